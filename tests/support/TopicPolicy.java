import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** The policy of a cluster for new topics: what it demands depends on the beginning of the topic's name. */
public final class TopicPolicy implements CreateTopicPolicy {
    private static final Set<String> NOT_TO_BE_SET =
        Set.of("retention.bytes", "unclean.leader.election.enable", "min.insync.replicas");

    /** The topics that were throttled once. */
    private static final Set<String> THROTTLED = new HashSet<>();

    @Override
    public void validate(RequestMetadata topic) {
        if (topic.topic().startsWith("refused-")) {
            throw new PolicyViolationException("the name of a topic must begin with\nteam-");
        }
        if (topic.topic().startsWith("throttled-") && THROTTLED.add(topic.topic())) {
            throw new ThrottlingQuotaExceededException("the quota is used up");
        }
        topic.configs().forEach((setting, value) -> {
            boolean isDefault = NOT_TO_BE_SET.contains(setting) || setting.equals("cleanup.policy") && value.equals("delete");
            if (topic.topic().startsWith("restricted-") && isDefault) {
                throw new PolicyViolationException("clients may not set " + setting);
            }
        });
    }

    @Override
    public void configure(Map<String, ?> settings) {
    }

    @Override
    public void close() {
    }
}
