import org.apache.zookeeper.server.ZooKeeperServerMain;

/** A broker of a Kafka that needs ZooKeeper, and its ZooKeeper, in one process: PORT and DIRECTORY of ZooKeeper, PROPERTIES of the broker. */
class WithZooKeeper {
    public static void main(String[] arguments) {
        String[] ofZooKeeper = {arguments[0], arguments[1]};
        new Thread(() -> ZooKeeperServerMain.main(ofZooKeeper)).start();
        kafka.Kafka.main(new String[] {arguments[2]});
    }
}
