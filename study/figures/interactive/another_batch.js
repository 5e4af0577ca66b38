function anotherBatch(figure, { batches, heights, weight, low, high, radius, diamond, traces }) {
  const find = (selector) => figure.querySelector(selector);
  const place = (x) => `${(100 * (x - low) / (high - low)).toFixed(2)}%`;
  const written = (mean) => mean.toFixed(2).replace("-", "\u2212");
  const sum = (signals) => signals.reduce((total, x) => total + x, 0);
  const range = { bn: [], wbn: [] };
  let number = 0;

  function draw(common, rare) {
    const scale = Math.sqrt(weight).toFixed(4);
    const discs = common.map((x, n) => `<circle class="point majority" data-x="${x}" ` +
      `cx="${place(x)}" cy="${heights[n]}" r="${radius}"/>`);
    const diamonds = rare.map((x) => `<svg x="${place(x)}" y="120"><path class="point minority" ` +
      `data-x="${x}" d="${diamond}" transform="scale(${scale})"/></svg>`);
    find(".points").innerHTML = [...discs, ...diamonds].join("");
  }

  function show() {
    const [common, rare] = batches[number].map((signals) => signals.map((x) => x / 1000));
    const size = common.length + rare.length;
    const means = {
      bn: (sum(common) + sum(rare)) / size,
      wbn: (sum(common) + weight * sum(rare)) / (common.length + weight * rare.length),
    };
    draw(common, rare);
    if (number === 0) for (const mean in means) find(`.trace.${mean}`).innerHTML = "";
    for (const [name, mean] of Object.entries(means)) {
      const at = place(mean), top = traces[name] + 6;
      range[name] = number === 0 ? [mean] : [...range[name], mean];
      for (const x of ["x1", "x2"]) find(`line.${name}`).setAttribute(x, at);
      find(`text.${name}`).setAttribute("x", at);
      find(`.trace.${name}`).innerHTML +=
        `<line x1="${at}" x2="${at}" y1="${top}" y2="${top + 14}"/>`;
      find(`b.${name}`).textContent = written(mean);
      find(`b.${name}-low`).textContent = written(Math.min(...range[name]));
      find(`b.${name}-high`).textContent = written(Math.max(...range[name]));
    }
    find("b.number").textContent = number + 1;
    find("b.size").textContent = size;
    find("b.held").textContent = rare.length;
  }

  find("button").addEventListener("click", () => {
    number = (number + 1) % batches.length;
    show();
  });
  find(".control").hidden = false;
  show();
}
