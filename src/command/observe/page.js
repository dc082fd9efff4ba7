// The table follows the elections. What comes in an event is the server's own markup, in which it has escaped every name.
"use strict";
const byId = id => document.getElementById(id);
const table = byId("elections");
const unfolded = new Set(), folded = new Set();
let order = [...table.tBodies].map(body => body.id), last = Date.now(), live = false;

function dress(body) {
  const button = body.querySelector("button");
  if (button) {
    // The roles of a group that are all led are folded, until a click says otherwise.
    const is_folded = folded.has(body.id) || body.classList.contains("led") && !unfolded.has(body.id);
    body.classList.toggle("folded", is_folded);
    button.hidden = false;
    button.setAttribute("aria-expanded", String(!is_folded));
    button.textContent = is_folded ? "show roles" : "hide roles";
  }
  const words = byId("filter").value.toLowerCase().split(" ");
  const text = body.textContent.toLowerCase();
  const is_dead = body.classList.contains("dead") && !byId("dead").checked;
  body.classList.toggle("hidden", is_dead || !words.every(word => text.includes(word)));
}

function arrange() {
  const bodies = order.map(byId).filter(body => body);
  if (byId("sort").value === "name") bodies.sort((a, b) => a.dataset.name.localeCompare(b.dataset.name));
  const now = [...table.tBodies];
  if (bodies.some((body, at) => body !== now[at])) table.append(...bodies);
  bodies.forEach(dress);
}

function show(event) {
  last = Date.now();
  live = true;
  byId("head").innerHTML = event.head;
  order = event.order;
  const there = new Set(order);
  for (const body of [...table.tBodies]) if (!there.has(body.id)) body.remove();
  for (const [id, html] of Object.entries(event.changed)) {
    const made = document.createElement("table");
    made.innerHTML = html;
    const old = byId(id);
    if (old) old.replaceWith(made.tBodies[0]); else table.append(made.tBodies[0]);
  }
  const none = byId("none");
  if (none) none.hidden = order.length > 0;
  arrange();
  age();
}

function age() {
  const old = Date.now() - last;
  if (!live && old < 5000) return;
  const is_old = old > 5000;
  byId("age").textContent = is_old ? "nothing heard for " + Math.floor(old / 1000) + " s: what is shown may be over" : "live";
  byId("age").className = is_old ? "bad" : "";
}

function follow() {
  const events = new EventSource("events");
  events.onmessage = event => show(JSON.parse(event.data));
  // Where it was refused, since too many follow, a browser does not try again.
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) setTimeout(follow, 5000); };
}

table.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  const body = button.closest("tbody"), is_folded = body.classList.contains("folded");
  (is_folded ? folded : unfolded).delete(body.id);
  (is_folded ? unfolded : folded).add(body.id);
  dress(body);
});
byId("tools").addEventListener("input", arrange);
byId("tools").addEventListener("submit", event => event.preventDefault());
byId("tools").hidden = false;
arrange();
follow();
setInterval(age, 1000);
