function explore(figure, { cells, verdicts, paper, lowest, readings, menus, notRun }) {
  const find = (selector) => figure.querySelector(selector);
  const all = (selector) => [...figure.querySelectorAll(selector)];
  const epoch = find("input"), selects = all("select"), names = Object.keys(menus);
  const marks = all(".cell"), crosses = all(".paper"), values = all(".value"), ticks = all(".tick");
  const tenths = (value) => (value / 10).toFixed(1);

  function show() {
    const chosen = {};
    names.forEach((name, n) => { chosen[name] = menus[name][selects[n].value]; });
    const { inference, metric } = chosen;
    const reading = readings.findIndex((choices) =>
      choices.every((choice, n) => choice === chosen[names[n]]));
    const setting = `${inference}|${reading + 1}|${epoch.value}`;
    const found = cells[`${setting}|${metric.replace("accuracy_", "")}`];
    const low = lowest[metric];
    const place = (x) => `${(12 + 85 * Math.max(0, x - low) / (100 - low)).toFixed(2)}%`;
    figure.classList.toggle("not-run", !found);
    marks.forEach((mark, n) => {
      if (!found) return;
      const [mean, from, to] = found[n].map((value) => value / 10);
      mark.querySelector("line").setAttribute("x1", place(from));
      mark.querySelector("line").setAttribute("x2", place(to));
      mark.querySelector(".mark").setAttribute("x", place(mean));
    });
    crosses.forEach((cross, n) => cross.setAttribute("x", place(paper[metric][n])));
    values.forEach((value, n) => {
      const [mean, from, to] = found ? found[n].map(tenths) : [];
      value.textContent = found ? `${mean} [${from}, ${to}]` : "not run";
    });
    ticks.forEach((tick, n) => {
      const at = low + n * (100 - low) / (ticks.length - 1);
      tick.textContent = at;
      tick.setAttribute("x", place(at));
    });
    find(".metric").textContent = selects[names.indexOf("metric")].selectedOptions[0].text
      .replace(/^./, (letter) => letter.toUpperCase());
    find(".verdict").textContent = found ? verdicts[setting] : `not judged. ${notRun.slice(0, -1)}`;
    find(".epoch").textContent = epoch.value;
    epoch.setAttribute("aria-valuetext", epoch.value);
  }

  epoch.addEventListener("input", show);
  for (const select of selects) select.addEventListener("change", show);
  find(".control").hidden = false;
  show();
}
