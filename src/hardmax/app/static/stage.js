// Pictures that move. The server sends the positions of all moments once; any moment between two of them is drawn here, at
// the rate of the screen. A stage is one plot: its models, and how its tokens are drawn. In-place changes followed by
// `change.emit()` are drawn without being sent to the server.
(function () {
  const TRAIL = 12;  // moments of a trail; later moves are too short to be seen (picture.py has the same number)
  const stages = new Map();
  const clock = { t: 0, moving: false };

  // Positions at time t, n * d numbers. Motion is eased where moments are layers, which are separate steps.
  function positions(f, t) {
    const all = f.positions[0], [count, n, d] = f.shape[0], size = n * d;
    const here = Math.max(0, Math.min(t, count - 1)), k = Math.min(Math.floor(here), count - 1);
    const share = here - k, s = f.eased[0] ? share * share * (3 - 2 * share) : share;
    const now = new Float64Array(size), from = k * size;
    if (s === 0 || k + 1 >= count) {
      for (let i = 0; i < size; i++) { now[i] = all[from + i]; }
    } else {
      for (let i = 0; i < size; i++) { now[i] = (1 - s) * all[from + i] + s * all[from + size + i]; }
    }
    return now;
  }

  // Orthographic view: to the right, upwards and towards the eye.
  function axes_of(camera) {
    const a = camera.data.azimuth[0], e = camera.data.elevation[0];
    const [ca, sa, ce, se] = [Math.cos(a), Math.sin(a), Math.cos(e), Math.sin(e)];
    return [[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]];
  }
  function seen_from(axes, p, n) {
    const parts = axes.map(() => new Float64Array(n));
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < 3; k++) {
        parts[k][i] = axes[k][0] * p[3 * i] + axes[k][1] * p[3 * i + 1] + axes[k][2] * p[3 * i + 2];
      }
    }
    return parts;
  }

  function flat(p, n) {
    const x = new Float64Array(n), y = new Float64Array(n);
    for (let i = 0; i < n; i++) { x[i] = p[2 * i]; y[i] = p[2 * i + 1]; }
    return [x, y];
  }

  // Paths up to time t; at rest at the first moment, the paths that lie ahead.
  function draw_trails(stage, t, now, axes) {
    const f = stage.frames.data, { trails } = stage;
    if (!trails) { return; }
    const xs = [], ys = [], rank = [];
    if (f.trails[0]) {
      const all = f.positions[0], [count, n, d] = f.shape[0], chosen = f.chosen[0], ahead = t === 0 && !clock.moving;
      const upto = Math.min(TRAIL, count - 1, ahead ? TRAIL : Math.floor(t));
      for (let j = 0; j < chosen.length; j++) {
        const i = chosen[j], length = upto + 1 + (ahead ? 0 : 1);
        const x = new Float64Array(length), y = new Float64Array(length);
        for (let k = 0; k < length; k++) {
          const source = k <= upto ? all : now, base = k <= upto ? (k * n + i) * d : i * d;
          if (axes) {
            const [a, b, c] = [source[base], source[base + 1], source[base + 2]];
            x[k] = axes[0][0] * a + axes[0][1] * b + axes[0][2] * c;
            y[k] = axes[1][0] * a + axes[1][1] * b + axes[1][2] * c;
          } else {
            x[k] = source[base];
            y[k] = source[base + 1];
          }
        }
        xs.push(x);
        ys.push(y);
        rank.push(f.rank[0][j]);
      }
    }
    trails.data.xs = xs;
    trails.data.ys = ys;
    trails.data.rank = rank;
    trails.change.emit();
  }

  // Whole paths of the chosen tokens up to time t.
  function grow(trails, f, t, now) {
    const all = f.positions[0], n = f.shape[0][1], upto = Math.floor(t), xs = [], ys = [];
    for (const i of f.chosen[0]) {
      const x = new Float64Array(upto + 2), y = new Float64Array(upto + 2);
      for (let k = 0; k <= upto; k++) { x[k] = all[2 * (k * n + i)]; y[k] = all[2 * (k * n + i) + 1]; }
      x[upto + 1] = now[2 * i];
      y[upto + 1] = now[2 * i + 1];
      xs.push(x);
      ys.push(y);
    }
    Object.assign(trails.data, { xs, ys, colour: f.tints[0] });
    trails.change.emit();
  }

  // Names that would be written over an earlier one are left out.
  function thin({ x_range, y_range }, x, y) {
    const wide = 0.18 * (x_range.end - x_range.start), high = 0.05 * (y_range.end - y_range.start);  // of a usual word
    for (let i = 1; i < x.length; i++) {
      for (let j = 0; j < i; j++) {
        if (Math.abs(x[i] - x[j]) < wide && Math.abs(y[i] - y[j]) < high) { x[i] = NaN; break; }
      }
    }
  }

  // Ranges between those of two moments, where each moment has its own: left, right, bottom, top.
  function look(plot, f, t) {
    const all = f.windows[0], last = all.length / 4 - 1, k = Math.min(Math.floor(t), last), next = Math.min(k + 1, last);
    const share = t - k, s = share * share * (3 - 2 * share);
    const [left, right, bottom, top] = [0, 1, 2, 3].map((i) => (1 - s) * all[4 * k + i] + s * all[4 * next + i]);
    plot.x_range.setv({ start: left, end: right }, { sync: false });
    plot.y_range.setv({ start: bottom, end: top }, { sync: false });
  }

  function by_depth(depth) { return Array.from(depth.keys()).sort((i, j) => depth[i] - depth[j]); }

  // Markers of tokens: a star for a leader from the layer on at which it leads.
  function marks(f, t, order, near) {
    const { emerged: [emerged], fill: [fill], rim: [rim], tied: [tied], dot: [dot], ink: [ink], index: [index] } = f;
    const last = f.shape[0][0] - 1, reached = f.ends[0] && t >= last ? Infinity : Math.floor(t + 1e-9);
    const made = { fill: [], line: [], size: [], shape: [], wide: [], index: [] };
    for (const i of order) {
      const leads = emerged[i] >= 0 && emerged[i] <= reached, scale = near ? near(i) : 1;
      made.fill.push(fill[i]);
      made.line.push(leads ? ink : rim[i]);
      made.size.push(scale * (leads ? 2 * Math.max(dot, 9) : tied[i] ? dot + 2 : dot));
      made.shape.push(leads ? "star" : "circle");
      made.wide.push(tied[i] && !leads ? 3 : 0.6);
      made.index.push(index[i]);
    }
    return made;
  }

  function show(one, visible) { if (one.visible !== visible) { one.setv({ visible }, { sync: false }); } }

  const draws = {
    plane(stage, t) {
      const f = stage.frames.data, [count, n] = f.shape[0], now = positions(f, t), view = view_in(stage);
      const alone = Boolean(clock.moving && f.fill && view);  // at rest the server draws, with what belongs to a selected token
      for (const one of stage.resting) { show(one, !clock.moving); }
      for (const one of stage.plot.renderers) {
        if (one.data_source === stage.tokens || one.data_source === stage.trails) { show(one, !alone); }
      }
      if (alone) {
        const [x, y] = flat(now, n), layer = Math.floor(t + 1e-9);
        if (!stage.made || stage.made.of !== f || stage.made.layer !== layer) {  // they change with the layer alone
          stage.made = { of: f, layer, marks: marks(f, t, f.index[0].keys()) };
        }
        Object.assign(stage.tokens.data, { x, y }, stage.made.marks);
        stage.alone = true;
        window.hardmaxMotion.paint(stage, view, f, Math.min(TRAIL, count - 1, Math.floor(t)), x, y, stage.made.marks);
        return;
      }
      draw_trails(stage, t, now, null);
      if (stage.alone) {
        stage.alone = false;
        stage.tokens.change.emit();
        window.hardmaxMotion.drop(stage);
      }
    },
    space(stage, t) {
      const f = stage.frames.data, [, n] = f.shape[0], now = positions(f, t), axes = axes_of(stage.camera);
      const [x, y, depth] = seen_from(axes, now, n), order = by_depth(depth), reach = f.reach[0];
      const near = (i) => 1 + 0.3 * depth[i] / reach;
      const made = marks(f, t, order, near);
      Object.assign(stage.tokens.data, { x: order.map((i) => x[i]), y: order.map((i) => y[i]) }, made);
      stage.tokens.change.emit();
      draw_trails(stage, t, now, axes);
      const corners = f.hull[0], faces = f.faces[0], h = corners.length / 3;
      const [hx, hy] = seen_from(axes, corners, h), xs = [], ys = [];
      for (let k = 0; k < faces.length; k += 3) {
        const three = [faces[k], faces[k + 1], faces[k + 2]];
        xs.push(three.map((i) => hx[i]));
        ys.push(three.map((i) => hy[i]));
      }
      stage.faces.data.xs = xs;
      stage.faces.data.ys = ys;
      stage.faces.change.emit();
      const length = 1.05 * reach, ends = [0, 1, 2].map((k) => [length * axes[0][k], length * axes[1][k]]);
      Object.assign(stage.frame.data, {
        x0: [0, 0, 0], y0: [0, 0, 0], x1: ends.map((e) => e[0]), y1: ends.map((e) => e[1]), name: ["1", "2", "3"],
      });
      stage.frame.change.emit();
    },
    // Marks of several kinds, all of them tokens of one path: `token` of a source has their numbers.
    points(stage, t) {
      const { saved } = window.hardmaxStages;  // without a server, what rests belongs to the moment that was saved alone
      for (const one of stage.resting || []) { show(one, !clock.moving && (saved === undefined || saved === t)); }
      if (!clock.moving) { return; }  // at rest the server draws
      const f = stage.frames.data, now = positions(f, t);
      for (const part of stage.parts) {
        const { token } = part.data, x = new Float64Array(token.length), y = new Float64Array(token.length);
        for (let i = 0; i < token.length; i++) { x[i] = now[2 * token[i]]; y[i] = now[2 * token[i] + 1]; }
        if (part === stage.names) { thin(stage.plot, x, y); }
        Object.assign(part.data, { x, y });
        part.change.emit();
      }
      if (stage.trails) { grow(stage.trails, f, t, now); }
      if (f.windows[0].length) { look(stage.plot, f, t); }
    },
    circle(stage, t) {
      const f = stage.frames.data, [x, y] = flat(positions(f, t), f.shape[0][1]);
      Object.assign(stage.tokens.data, { x, y });
      stage.tokens.change.emit();
    },
    sphere(stage, t) {
      const f = stage.frames.data, axes = axes_of(stage.camera), n = f.shape[0][1];
      const [x, y, depth] = seen_from(axes, positions(f, t), n), order = by_depth(depth), colours = f.fill[0];
      Object.assign(stage.tokens.data, {
        x: order.map((i) => x[i]), y: order.map((i) => y[i]), colour: order.map((i) => colours[i]),
        alpha: order.map((i) => depth[i] < 0 ? 0.22 : 0.9), size: order.map((i) => 8 + 3 * depth[i]),
      });
      stage.tokens.change.emit();
      const g = f.ghost[0].length / 3, [gx, gy, gd] = seen_from(axes, f.ghost[0], g);
      Object.assign(stage.ghost.data, { x: gx, y: gy, alpha: Array.from(gd, (d) => d < 0 ? 0.35 : 1) });
      stage.ghost.change.emit();
      const turn = Array.from({ length: 73 }, (_, k) => 2 * Math.PI * k / 72), xs = [], ys = [], front = [];
      const rings = [-60, -30, 0, 30, 60].map((deg) => turn.map((u) => {
        const r = Math.cos(deg * Math.PI / 180), z = Math.sin(deg * Math.PI / 180);
        return [r * Math.cos(u), r * Math.sin(u), z];
      })).concat([0, 30, 60, 90, 120, 150].map((deg) => turn.map((u) => {
        const c = Math.cos(deg * Math.PI / 180), s = Math.sin(deg * Math.PI / 180);
        return [c * Math.cos(u), s * Math.cos(u), Math.sin(u)];
      })));
      for (const ring of rings) {  // the halves in front and behind, so that the nearer one is drawn stronger
        for (const side of [0, 1]) {
          const px = [], py = [];
          for (const q of ring) {
            const d = axes[2][0] * q[0] + axes[2][1] * q[1] + axes[2][2] * q[2], shown = (d >= 0) === (side === 1);
            px.push(shown ? axes[0][0] * q[0] + axes[0][1] * q[1] + axes[0][2] * q[2] : NaN);
            py.push(shown ? axes[1][0] * q[0] + axes[1][1] * q[1] + axes[1][2] * q[2] : NaN);
          }
          xs.push(px);
          ys.push(py);
          front.push(side ? 0.9 : 0.25);
        }
      }
      Object.assign(stage.rings.data, { xs, ys, alpha: front });
      stage.rings.change.emit();
    },
  };

  function draw(stage, t) {
    const f = stage.frames.data;
    if (!f.shape || !f.shape.length) { return; }
    if (f.pace) { t *= f.pace[0]; }  // a plot that takes fewer or more steps than the timeline
    draws[stage.kind](stage, t);
    if (stage.here && f.times) {
      const times = f.times[0], k = Math.min(Math.floor(t), times.length - 1), next = Math.min(k + 1, times.length - 1);
      const location = times[k] + (t - k) * (times[next] - times[k]);
      for (const one of [].concat(stage.here)) { one.setv({ location }, { sync: false }); }
    }
    if (!stage.alone) { lift(stage); }
  }

  function view_of(plot) {
    const find = (view) => view.model === plot ? view
      : (view.child_views || []).map(find).find((found) => found != null);
    return Object.values(window.Bokeh.index.roots).map(find).find((found) => found != null);
  }

  function view_in(stage) {
    if (!stage.view || stage.view.is_destroyed) { stage.view = view_of(stage.plot); }
    return stage.view;
  }

  // Bokeh waits a sixtieth of a second after each painting, and so misses every other frame of most screens. While tokens
  // move, a plot is painted in the frame in which it was drawn.
  const patient = new WeakSet();
  function paint(stage) {
    const view = view_in(stage);
    if (!view) { return; }
    if (!patient.has(view)) {
      const later = view.throttled_paint;
      patient.add(view);
      view.throttled_paint = () => clock.moving ? Promise.resolve() : later();
    }
    view.paint();
  }

  // What moves is painted on the upper canvas of the plot, so that axes, grid and all that rests are not painted with it.
  const levels = new WeakMap();
  function lift(stage) {
    const sources = new Set(Object.values(stage).flat()), view = view_in(stage);
    for (const one of view ? stage.plot.renderers : []) {
      if (!sources.has(one.data_source)) { continue; }
      if (!levels.has(one)) { levels.set(one, one.level); }
      const level = clock.moving ? "overlay" : levels.get(one);
      if (one.level === level) { continue; }
      one.setv({ level }, { sync: false });
      view.request_paint();  // both canvases
    }
  }

  // A finger on a token drags it, elsewhere it scrolls the page; on a view of space it turns sideways and scrolls upwards.
  const touched = new WeakSet(), FINGER = 28;  // pixels
  function take_touches(stage) {
    const view = view_of(stage.plot);
    if (!view || touched.has(view.el)) { return; }
    touched.add(view.el);
    if (stage.camera) { view.el.style.touchAction = "pan-y"; return; }
    if (!stage.movable) { return; }
    view.el.addEventListener("touchstart", (event) => {
      const { clientX, clientY } = event.touches[0], box = view.el.getBoundingClientRect(), { x_scale, y_scale } = view.frame;
      const hand = window.hardmaxHand = window.hardmaxHand || { held: null, waiting: null, sent: 0, answered: 0, timer: null };
      hand.reach = FINGER;
      const near = stage.movable.some(({ data: { x, y } }) => Array.from(x).some((value, i) => Math.hypot(
        box.x + x_scale.compute(value) - clientX, box.y + y_scale.compute(y[i]) - clientY) < FINGER));
      if (near && event.touches.length === 1) { event.preventDefault(); }  // or the browser takes it for scrolling
    }, { passive: false });
  }

  window.hardmaxStages = {
    clock, positions, stages,
    // New positions have come from the server (or the camera has moved: `at` is then left out).
    update(stage, at) {
      const known = stages.get(stage.name);
      stages.set(stage.name, Object.assign(known || {}, stage));
      if (at !== undefined && !clock.moving) { clock.t = at; }
      draw(stages.get(stage.name), clock.t);
      take_touches(stage);
    },
    draw(t) {
      clock.t = t;
      for (const stage of stages.values()) {
        if (stage.hidden) { continue; }
        draw(stage, t);
        if (clock.moving && !stage.alone) { paint(stage); }
      }
    },
    // Whether moments between two can be drawn here, for a timeline of so many steps.
    smooth(end) {
      const all = [...stages.values()].filter((stage) => !stage.hidden);
      return all.length > 0 && all.some((stage) => {
        const f = stage.frames.data;
        return f.shape && f.shape.length > 0 && f.shape[0][0] >= Math.min(end, 2) && f.playable[0];
      });
    },
    // Turn the view by a drag of so many radians.
    turn(camera, around, up, done) {
      const a = camera.data.azimuth[0] - around;
      const e = Math.max(-1.5, Math.min(1.5, camera.data.elevation[0] + up));
      if (done) { camera.data = { azimuth: [a], elevation: [e] }; return; }
      camera.data.azimuth = [a];
      camera.data.elevation = [e];
      camera.change.emit();
    },
  };
})();
