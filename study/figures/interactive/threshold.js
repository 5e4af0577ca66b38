function moveThreshold(figure, { networks, low, high, bins, box: [top, base], curve: [best, half] }) {
  const find = (selector) => figure.querySelector(selector);
  const picture = find("svg"), slider = find("input"), menu = find("select");
  const [toBest, toOwn] = figure.querySelectorAll("button");
  const number = (value) => value.toFixed(2).replace("-", "\u2212");
  const percent = (share) => (100 * share).toFixed(1);

  function above(margins, threshold) {
    let first = 0, last = margins.length;
    while (first < last) {
      const middle = (first + last) >> 1;
      if (margins[middle] > threshold) last = middle; else first = middle + 1;
    }
    return 1 - first / margins.length;
  }

  function accuracies(threshold) {
    const [majority, minority] = networks[menu.value];
    const at = Math.round(1000 * threshold);
    const found = { majority: 1 - above(majority, at), minority: above(minority, at) };
    return { ...found, balanced: (found.majority + found.minority) / 2 };
  }

  function counts(margins) {
    const found = Array(bins).fill(0);
    for (const margin of margins) {
      const place = Math.floor(bins * (margin / 1000 - low) / (high - low));
      found[Math.max(0, Math.min(bins - 1, place))] += 1;
    }
    return found;
  }

  const height = (accuracy) => half - 2 * (half - best) * (accuracy - 0.5);

  function draw() {
    const [majority, minority] = networks[menu.value].slice(0, 2).map(counts);
    const tallest = Math.max(...majority, ...minority);
    for (const [name, found] of Object.entries({ majority, minority })) {
      const steps = found.map((n, k) => `V${(base - (base - top) * n / tallest).toFixed(2)}` +
        `H${(100 * (k + 1) / bins).toFixed(3)}`);
      find(`path.${name}`).setAttribute("d", `M0 ${base}${steps.join("")}V${base}z`);
    }
    const points = Array.from({ length: 101 }, (_, n) =>
      `${n} ${height(accuracies(low + n * (high - low) / 100).balanced).toFixed(2)}`);
    find("path.accuracy").setAttribute("d", `M${points.join("L")}`);
    find("b.own").textContent = percent(accuracies(0).balanced);
    find("b.best-at").textContent = number(networks[menu.value][2]);
    find("b.best").textContent = percent(networks[menu.value][3]);
    show();
  }

  function show(threshold = Number(slider.value)) {
    const found = accuracies(threshold);
    const place = `${(100 * (threshold - low) / (high - low)).toFixed(2)}%`;
    for (const x of ["x1", "x2"]) find("line.at").setAttribute(x, place);
    find("circle.at").setAttribute("cx", place);
    find("circle.at").setAttribute("cy", height(found.balanced).toFixed(2));
    for (const name in found) find(`b.${name}`).textContent = percent(found[name]);
    find("b.at").textContent = number(threshold);
    slider.setAttribute("aria-valuetext", number(threshold));
  }

  function follow(event) {
    const { left, width } = picture.getBoundingClientRect();
    slider.value = low + (event.clientX - left) / width * (high - low);
    show();
  }

  function go(threshold) {
    slider.value = threshold;
    show(threshold);
  }

  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    follow(event);
  });
  picture.addEventListener("pointermove", (event) => event.buttons && follow(event));
  slider.addEventListener("input", () => show());
  menu.addEventListener("change", draw);
  toBest.addEventListener("click", () => go(networks[menu.value][2]));
  toOwn.addEventListener("click", () => go(0));
  find(".control").hidden = false;
  draw();
}
