function minorityWeight(figure, { low, high }) {
  const find = (selector) => figure.querySelector(selector);
  const slider = find("input");
  const diamonds = [...figure.querySelectorAll(".point.minority")];
  const circles = [...figure.querySelectorAll(".point.majority")];
  const sum = (points) => points.reduce((total, point) => total + Number(point.dataset.x), 0);

  function show() {
    const weight = Number(slider.value);
    const total = circles.length + weight * diamonds.length;
    const squares = circles.length + weight ** 2 * diamonds.length;
    const mean = (sum(circles) + weight * sum(diamonds)) / total;
    const place = `${100 * (mean - low) / (high - low)}%`;
    for (const x of ["x1", "x2"]) find("line.wbn").setAttribute(x, place);
    find("text.wbn").setAttribute("x", place);
    for (const diamond of diamonds) {
      diamond.setAttribute("transform", `scale(${Math.sqrt(weight)})`);
    }
    slider.setAttribute("aria-valuetext", `${weight} times a majority sample`);
    find(".weight").textContent = weight;
    find(".mean").textContent = mean.toFixed(2).replace("-", "\u2212");
    find(".size").textContent = (total ** 2 / squares).toFixed(2);
  }

  slider.addEventListener("input", show);
  find(".control").hidden = false;
  show();
}
