// The player: one timeline for all stages of a page (stage.js). It glides between moments at the rate of the screen and
// tells the server only where it stops. Space plays and pauses, the arrow keys step. Without stages that know all moments
// it goes from one moment to the next, and the server draws each.
(function () {
  const SPEEDS = [0.25, 0.5, 1, 2, 4];
  const HOLD = 900;  // milliseconds at the end before a loop begins again, so that the end can be seen
  const STEP = 220;  // milliseconds in which a single step or the rest of a paused one is drawn
  const SLIDER = 50;  // milliseconds between two places of the slider in motion: it moves a pixel or two in that time
  const ICONS = {
    first: "M3 2h2v12H3zM14 2v12L6 8z", previous: "M11 2v12L4 8z", play: "M4 2l10 6-10 6z", pause: "M4 2h3v12H4zM9 2h3v12H9z",
    next: "M5 2l7 6-7 6z", last: "M11 2h2v12h-2zM2 2l8 6-8 6z",
    loop: "M4 4h7V2l4 3-4 3V6H5v3H3V5zM12 12H5v2l-4-3 4-3v2h6V7h2v4z",
  };
  const NAMES = {
    first: "To the beginning", previous: "One step back", play: "Play", next: "One step on", last: "To the end",
    loop: "Repeat",
  };
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let latest = null;

  class Player {
    constructor(root, data, tell) {
      this.root = root;
      this.data = data;
      this.tell = tell;
      this.t = data.value;
      this.playing = false;
      this.frames = 0;
      this.build();
      this.show();
    }

    build() {
      const button = (kind) => `<button type="button" class="${kind}" aria-label="${NAMES[kind]}" title="${NAMES[kind]}">`
        + `<svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d="${ICONS[kind]}"/></svg></button>`;
      const speeds = SPEEDS.map((s) => `<option value="${s}"${s === 1 ? " selected" : ""}>${s}×</option>`).join("");
      this.root.innerHTML = `<div class="buttons">${["first", "previous", "play", "next", "last", "loop"].map(button).join("")}`
        + `<select aria-label="Speed" title="Speed">${speeds}</select></div>`
        + `<div class="line"><span class="moment" aria-live="off"></span><input type="range" min="0" step="any"></div>`;
      const part = (selector) => this.root.querySelector(selector);
      this.range = part("input");
      this.words = part(".moment");
      this.speed = part("select");
      this.button = part(".play");
      this.loop = part(".loop");
      this.loop.setAttribute("aria-pressed", "false");
      this.button.addEventListener("click", () => this.toggle());
      part(".first").addEventListener("click", () => this.go(0));
      part(".previous").addEventListener("click", () => this.step(-1));
      part(".next").addEventListener("click", () => this.step(1));
      part(".last").addEventListener("click", () => this.go(this.data.end));
      this.loop.addEventListener("click", () => {
        this.loop.setAttribute("aria-pressed", String(this.loop.getAttribute("aria-pressed") !== "true"));
      });
      // A button that was clicked gives the focus back, so that the space bar plays and does not press it again.
      this.root.addEventListener("click", (event) => {
        const clicked = event.target.closest("button");
        if (clicked && event.detail > 0) { clicked.blur(); }
      });
      this.range.addEventListener("input", () => {
        this.halt();
        this.draw(this.smooth() ? Number(this.range.value) : Math.round(this.range.value));
      });
      this.range.addEventListener("change", () => this.settle());
      this.range.addEventListener("keydown", (event) => {
        const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
        if (by) { event.preventDefault(); this.step(by); }
        if (event.key === "Home") { event.preventDefault(); this.go(0); }
        if (event.key === "End") { event.preventDefault(); this.go(this.data.end); }
      });
    }

    smooth() { return window.hardmaxStages.smooth(this.data.end); }

    // Words and slider for the time.
    show() {
      const { end, label, last, scale, titles } = this.data, k = Math.round(this.t);
      const number = scale === 1 ? String(k) : (this.t * scale).toFixed(1);
      const text = titles && k < titles.length ? titles[k] : last && k >= end ? last : `${label} ${number}`;
      if (this.words.textContent !== text) { this.words.textContent = text; }
      if (Number(this.range.max) !== end) { this.range.max = end; }
      this.range.value = this.t;
      for (const [of, value] of [["aria-label", this.data.named || label], ["aria-valuetext", text]]) {
        if (this.range.getAttribute(of) !== value) { this.range.setAttribute(of, value); }
      }
      const name = this.playing ? "Pause" : "Play";
      if (this.button.getAttribute("aria-label") !== name) {
        this.button.setAttribute("aria-label", name);
        this.button.title = `${name} (space)`;
        this.button.querySelector("path").setAttribute("d", ICONS[this.playing ? "pause" : "play"]);
      }
    }

    draw(t) {
      this.t = Math.max(0, Math.min(t, this.data.end));
      if (this.smooth()) {
        window.hardmaxStages.clock.moving = true;
        window.hardmaxStages.draw(this.t);
      } else if (Math.floor(this.t) !== this.data.value) {
        this.tell(Math.floor(this.t));
      }
      const now = performance.now();
      if (now - (this.shown || 0) >= SLIDER) { this.shown = now; this.show(); }
    }

    // Rest at a whole moment, and tell the server.
    settle() {
      this.playing = false;
      this.target = null;
      this.t = Math.round(this.t);
      const { clock } = window.hardmaxStages, moved = this.data.value !== this.t;
      if (clock.moving) { window.hardmaxStages.draw(this.t); }
      clock.moving = false;
      clock.t = this.t;
      if (moved) { this.tell(this.t); }  // the server draws what belongs to a selected token there
      else if (this.smooth()) { window.hardmaxStages.draw(this.t); }
      this.show();
    }

    halt() {
      this.playing = false;
      this.target = null;
      cancelAnimationFrame(this.request);
      clearTimeout(this.waiting);
    }

    glide(target, milliseconds, then) {
      this.halt();
      if (calm.matches || !this.smooth()) { this.draw(target); this.settle(); return; }
      this.target = target;
      const from = this.t, began = performance.now();
      const frame = (now) => {
        const share = Math.min(1, (now - began) / milliseconds);
        this.draw(from + share * (target - from));
        if (share < 1) { this.request = requestAnimationFrame(frame); } else { then(); }
      };
      this.request = requestAnimationFrame(frame);
    }

    step(by) {
      const from = this.target ?? this.t;  // a key that is pressed several times quickly goes as many steps
      const target = Math.max(0, Math.min(this.data.end, (by > 0 ? Math.floor(from + 1e-6) : Math.ceil(from - 1e-6)) + by));
      this.glide(target, STEP, () => this.settle());
    }

    go(target) { this.halt(); this.draw(target); this.settle(); }

    toggle() {
      if (this.playing) { this.pause(); } else { this.play(); }
    }

    pause() {
      const target = Math.round(this.t);
      this.glide(target, STEP * Math.abs(target - this.t) + 1, () => this.settle());
      this.show();
    }

    play() {
      this.halt();
      if (this.t >= this.data.end) { this.t = 0; }
      this.playing = true;
      this.frames = 0;
      this.began = performance.now();
      let before = this.began, t = this.t;
      const frame = (now) => {
        if (!this.playing || !this.root.isConnected) { return; }
        t += Math.min(250, now - before) * Number(this.speed.value) / this.data.interval;
        before = now;
        this.frames += 1;
        this.draw(calm.matches ? Math.floor(t) : t);
        if (t < this.data.end) { this.request = requestAnimationFrame(frame); return; }
        if (this.loop.getAttribute("aria-pressed") === "true") {
          this.waiting = setTimeout(() => { if (this.playing) { this.t = 0; this.play(); } }, HOLD);
        } else {
          this.settle();
        }
      };
      this.show();
      this.request = requestAnimationFrame(frame);
    }

    // The server shows something else: what plays goes on from its beginning.
    begin() {
      if (!this.playing) { return; }
      this.t = 0;
      this.play();
    }

    // The server has set the moment, its name or the end of the timeline.
    follow() {
      if (!this.playing && this.data.value !== Math.round(this.t)) {
        this.t = this.data.value;
        window.hardmaxStages.clock.t = this.t;
      }
      this.t = Math.min(this.t, this.data.end);
      this.show();
    }
  }

  window.hardmaxPlayer = {
    // `tell` sets the moment of the player.
    attach(root, data, tell = (moment) => { data.value = moment; }) {
      if (latest) { latest.halt(); }
      latest = new Player(root, data, tell);
      root.player = latest;
      return latest;
    },
    follow(root) { if (root.player) { root.player.follow(); } },
    begin(root) { if (root.player) { root.player.begin(); } },
    get latest() { return latest; },
    // Before tokens are moved by hand.
    stop() { if (latest && latest.playing) { latest.halt(); latest.settle(); } },
  };

  // Everything inside shadow roots that a selector finds.
  function* inside(root, selector) {
    for (const one of root.querySelectorAll("*")) {
      if (one.matches(selector)) { yield one; }
      if (one.shadowRoot) { yield* inside(one.shadowRoot, selector); }
    }
  }
  // A box of text has an undo of its own.
  const typing = (one) => one && one.matches("textarea, select, input:not([type=range]):not([type=checkbox]):not([type=radio])");

  document.addEventListener("keydown", (event) => {
    const focus = event.composedPath()[0];
    if (!(focus instanceof Element) || (typing(focus) && !focus.matches("select"))) { return; }
    if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "z") {
      const [host] = inside(document, event.shiftKey ? ".redo" : ".undo");
      const button = host && (host.shadowRoot || host).querySelector("button");
      if (button && !button.disabled) { event.preventDefault(); button.click(); }
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !latest || !latest.root.isConnected || typing(focus)) { return; }
    const own = focus.closest("button, a, summary, [role=slider], input");
    if (event.key === " " && !own) { event.preventDefault(); latest.toggle(); }
    if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && !own) {
      event.preventDefault();
      latest.step(event.key === "ArrowRight" ? 1 : -1);
    }
  });
})();
