"use strict";
(() => {
  const one = (what, from = document) => from.querySelector(what);
  const all = (what, from = document) => [...from.querySelectorAll(what)];
  document.documentElement.classList.add("scripted");
  one(".tools").hidden = false;

  // The filter shows findings whose text contains all words, and whose fate is chosen.
  const filter = one("#filter"), matches = one("#matches"), cards = all(".card");
  const boxes = all(".flame .box");
  // The cards of the part that is shown.
  const here = () => cards.filter((card) => !card.closest(".panel[hidden]"));
  const texts = new Map();
  const text = (node) => {
    if (!texts.has(node)) texts.set(node, node.textContent.toLowerCase());
    return texts.get(node);
  };
  const sift = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = new Set(all("[data-fate]:not(details)").filter((box) => !box.checked).map((box) => box.dataset.fate));
    for (const card of cards) {
      card.hidden = !words.every((word) => text(card).includes(word)) || off.has(card.dataset.fate);
    }
    const shown = here();
    matches.textContent = words.length ? `${shown.filter((card) => !card.hidden).length} of ${shown.length}` : "";
    for (const box of boxes) {
      box.classList.toggle("hit", words.length > 0 && words.every((word) => text(box).includes(word)));
    }
  };
  filter.addEventListener("input", sift);
  for (const box of all("input[data-fate]")) box.addEventListener("change", sift);
  sift();
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && event.target.tagName !== "INPUT") {
      event.preventDefault();
      filter.focus();
    } else if (event.key === "Escape" && event.target === filter) {
      filter.value = "";
      sift();
    }
  });
  const fold = one("#fold");
  fold.addEventListener("click", () => {
    const open = fold.textContent === "Open all";
    for (const card of here()) if (!card.hidden) card.open = open;
    fold.textContent = open ? "Close all" : "Open all";
  });
  window.addEventListener("beforeprint", () => { for (const card of cards) card.open = true; });

  // Marks the section on the screen in the page's menu.
  const links = new Map(all(".bar a").map((link) => [link.hash.slice(1), link]));
  if ("IntersectionObserver" in window) {
    const seen = new Set();
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
      const now = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) link.classList.toggle("now", id === now);
    }, { rootMargin: "-70px 0px -60% 0px" });
    for (const id of links.keys()) watch.observe(document.getElementById(id));
  }

  // A flame graph: a box becomes as wide as the page, and its callers with it.
  for (const flame of all(".flame")) {
    const graph = one(".graph", flame), readout = one(".readout span", flame), unzoom = one(".readout button", flame);
    const boxes = all(".box", graph);
    const number = (box, name) => parseFloat(box.getAttribute(name));
    const place = new Map(boxes.map((box) => [box, { x: number(box, "x"), w: number(box, "width"), d: +box.dataset.depth }]));
    const small = 1e-3;
    let chosen = boxes[0];
    // A name with one visible letter is useless.
    const fit = () => {
      const width = graph.clientWidth / 100;
      for (const box of boxes) one("text", box).style.display = number(box, "width") * width < 26 ? "none" : "";
    };
    const describe = (box) => {
      const [name, ...rest] = one("title", box).textContent.split(/: (?=[\d.]+ [KMGTPE]?i?B in )/);
      readout.replaceChildren(Object.assign(document.createElement("b"), { textContent: name }), `\u2002${rest.join("")}`);
    };
    const zoom = (box) => {
      chosen = box;
      const { x, w, d } = place.get(box);
      for (const other of boxes) {
        const at = place.get(other);
        const inside = at.d >= d && at.x >= x - small && at.x + at.w <= x + w + small;
        const around = at.d < d && at.x <= x + small && at.x + at.w >= x + w - small;
        other.style.display = inside || around ? "" : "none";
        other.classList.toggle("past", around);
        if (around) {
          other.setAttribute("x", "0%");
          other.setAttribute("width", "100%");
        } else if (inside) {
          other.setAttribute("x", `${((at.x - x) / w) * 100}%`);
          other.setAttribute("width", `${(at.w / w) * 100}%`);
        }
      }
      unzoom.hidden = box === boxes[0];
      fit();
      describe(box);
    };
    const go = (box) => {
      if (!box) return;
      for (const other of boxes) other.setAttribute("tabindex", other === box ? "0" : "-1");
      box.focus();
    };
    boxes.forEach((box, at) => {
      box.setAttribute("tabindex", at ? "-1" : "0");
      box.setAttribute("role", "button");
      box.setAttribute("aria-label", one("title", box).textContent);
    });
    graph.addEventListener("click", (event) => {
      const box = event.target.closest(".box");
      if (box) zoom(box);
    });
    for (const kind of ["pointerover", "focusin"]) {
      graph.addEventListener(kind, (event) => {
        const box = event.target.closest(".box");
        if (box) describe(box);
      });
    }
    graph.addEventListener("pointerleave", () => describe(chosen));
    graph.addEventListener("keydown", (event) => {
      const box = event.target.closest(".box");
      if (!box) return;
      const at = place.get(box);
      const seen = boxes.filter((other) => other.style.display !== "none");
      const level = (d) => seen.filter((other) => place.get(other).d === d);
      const row = level(at.d), here = row.indexOf(box);
      const keys = {
        Enter: () => zoom(box),
        " ": () => zoom(box),
        Escape: () => zoom(boxes[0]),
        ArrowLeft: () => go(row[here - 1]),
        ArrowRight: () => go(row[here + 1]),
        ArrowUp: () => go(level(at.d - 1).find((other) => place.get(other).x <= at.x + small && place.get(other).x + place.get(other).w >= at.x + at.w - small)),
        ArrowDown: () => go(level(at.d + 1).find((other) => place.get(other).x >= at.x - small && place.get(other).x + place.get(other).w <= at.x + at.w + small)),
      };
      if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
      }
    });
    unzoom.addEventListener("click", () => zoom(boxes[0]));
    window.addEventListener("resize", fit);
    fit();
    describe(chosen);
  }

  // Tabs: one panel at a time. Without this script all of them are shown.
  const tabs = all(".tabs [role=tab]"), panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
  const choose = (at) => {
    tabs.forEach((tab, other) => {
      tab.setAttribute("aria-selected", other === at);
      tab.tabIndex = other === at ? 0 : -1;
      panels[other].hidden = other !== at;
    });
    sift();
    // A hidden panel had no width.
    window.dispatchEvent(new Event("resize"));
  };
  if (tabs.length) {
    one(".tabs").hidden = false;
    tabs.forEach((tab, at) => {
      panels[at].setAttribute("role", "tabpanel");
      panels[at].setAttribute("aria-labelledby", tab.id);
      tab.addEventListener("click", () => choose(at));
      tab.addEventListener("keydown", (event) => {
        const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = (to + tabs.length) % tabs.length;
        choose(next);
        tabs[next].focus();
      });
    });
    const wanted = () => panels.findIndex((panel) => `#${panel.id}` === location.hash);
    const first = tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    choose(wanted() < 0 ? first : wanted());
    window.addEventListener("hashchange", () => { if (wanted() >= 0) choose(wanted()); });
    window.addEventListener("beforeprint", () => { for (const panel of panels) panel.hidden = false; });
    window.addEventListener("afterprint", () => choose(tabs.findIndex((tab) => tab.tabIndex === 0)));
  }

  // Charts: the figures under the pointer.
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  const bytes = (value) => {
    let unit = 0;
    while (value >= 1023.95 && unit < 6) { value /= 1024; unit += 1; }
    return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
  };
  const time = (ns) => ns < 1e9 ? `${(ns / 1e6).toFixed(1)} ms` : ns < 100e9 ? `${(ns / 1e9).toFixed(2)} s` : `${Math.floor(ns / 60e9)} min ${Math.floor(ns / 1e9 % 60)} s`;
  for (const plot of all(".plot")) {
    const points = plot.dataset.points.split(" ").map((point) => point.split(",").map(Number));
    const end = +plot.dataset.end, top = +plot.dataset.top;
    const cursor = Object.assign(document.createElement("div"), { className: "cursor", hidden: true });
    const dot = document.createElement("i"), label = document.createElement("b");
    cursor.append(dot, label);
    plot.append(cursor);
    plot.addEventListener("pointermove", (event) => {
      const frame = plot.getBoundingClientRect();
      const at = ((event.clientX - frame.left) / frame.width) * end;
      let nearest = points[0];
      for (const point of points) if (Math.abs(point[0] - at) < Math.abs(nearest[0] - at)) nearest = point;
      const [ns, live, third] = nearest;
      const more = "profile" in plot.dataset ? (third ? `${bytes(live)} live, ${bytes(third)} resident` : `${bytes(live)} live`) : `${bytes(live)} in ${third.toLocaleString("en")} blocks`;
      cursor.hidden = false;
      cursor.style.left = `${(ns / end) * 100}%`;
      dot.style.bottom = `${(live / top) * 100}%`;
      label.textContent = `${more} at ${time(ns)}`;
      cursor.classList.toggle("turned", ns / end > .6);
    });
    plot.addEventListener("pointerleave", () => { cursor.hidden = true; });
  }
})();
