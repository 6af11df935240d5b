// Dragging in the plane: the nearest token (or end of the ellipse) moves at once on the screen, and the server is told,
// which draws the rest. Only one message is under way at a time; the latest position waits for the answer.
const hand = window.hardmaxHand = window.hardmaxHand || {held: null, waiting: null, sent: 0, answered: 0, timer: null};
const REACH = 16;  // pixels; a finger needs more (stage.js)
function pixels(dx, dy) {
  const x = plot.inner_width / (plot.x_range.end - plot.x_range.start);
  const y = plot.inner_height / (plot.y_range.end - plot.y_range.start);
  return Math.hypot(dx * x, dy * y);
}
function nearest(source, x, y) {
  let best = -1, least = hand.reach || REACH;
  const {x: xs, y: ys} = source.data;
  for (let i = 0; i < xs.length; i++) {
    const far = pixels(xs[i] - x, ys[i] - y);
    if (far < least) { least = far; best = i; }
  }
  return {row: best, far: least};
}
function send(message) {
  if (hand.sent !== hand.answered && message.kind === "move") { hand.waiting = message; return; }
  hand.waiting = null;
  hand.sent += 1;
  hand.since = performance.now();
  wire.data = {kind: [message.kind], what: [message.what], x: [message.x], y: [message.y], serial: [hand.sent]};
}
function follow() {
  if (hand.held === null) { return; }
  const {source, row, x, y} = hand.held;
  if (row >= source.data.x.length) { return; }
  source.data.x[row] = x;
  source.data.y[row] = y;
  source.change.emit();
}
const name = cb_obj.event_name || (cb_obj === answer ? "answer" : "redrawn");
if (name === "panstart") {
  if (window.hardmaxPlayer) { window.hardmaxPlayer.stop(); }
  const {x, y} = cb_obj;
  const end = nearest(handles, x, y), token = nearest(tokens, x, y);
  const turns = end.row >= 0 && end.far <= token.far, {row} = turns ? end : token;
  if (row >= 0) {
    hand.held = {source: turns ? handles : tokens, row, what: turns ? -1 - row : tokens.data.index[row], x, y};
  }
} else if (name === "pan" && hand.held !== null) {
  hand.held.x = cb_obj.x;
  hand.held.y = cb_obj.y;
  follow();
  send({kind: "move", what: hand.held.what, x: cb_obj.x, y: cb_obj.y});
} else if (name === "panend" && hand.held !== null) {
  const {what, x, y} = hand.held;
  hand.held = null;
  send({kind: "drop", what, x, y});
} else if (name === "tap") {
  const {row} = nearest(tokens, cb_obj.x, cb_obj.y);
  send({kind: "select", what: row >= 0 ? tokens.data.index[row] : -1, x: cb_obj.x, y: cb_obj.y});
} else if (name === "doubletap") {
  if (nearest(tokens, cb_obj.x, cb_obj.y).row < 0) { send({kind: "add", what: -1, x: cb_obj.x, y: cb_obj.y}); }
} else if (name === "answer") {
  hand.answered = answer.data.serial[0];
  hand.took = performance.now() - hand.since;
  if (hand.waiting !== null) { send(hand.waiting); }
} else if (name === "redrawn") {
  follow();
}
