// For the test in browser.rs: uses the page of a recording as a reader does, and tells on the console what comes of it.
"use strict";
// The listener for another colour scheme.
const { matchMedia: query } = window;
let scheme;
window.matchMedia = of => {
  const found = query.call(window, of);
  if (of.includes("scheme")) scheme = found;
  return found;
};
addEventListener("load", async () => {
  const one = selector => document.querySelector(selector);
  const painted = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  // Whether it comes true within ten seconds.
  const soon = async so => {
    for (const end = performance.now() + 1e4; performance.now() < end; await painted()) if (so()) return true;
    return false;
  };
  const mouse = (type, element, across, down) => {
    const box = element.getBoundingClientRect();
    const [clientX, clientY] = [box.left + across * box.width, box.top + down * box.height];
    const event = new MouseEvent(type, { bubbles: true, clientX, clientY, movementX: 1, view: window });
    document.elementFromPoint(clientX, clientY).dispatchEvent(event);
  };
  const click = element => ["mousedown", "mouseup", "click"].forEach(type => mouse(type, element, 0.5, 0.5));
  const picture = () => one(".timeline canvas").toDataURL();
  const inView = () => Number(one(".timeline .hint").innerText.match(/([\d,]+) readings in/)[1].replace(/,/g, ""));
  const zoomed = () => one(".timeline").dataset.zoomed;

  await painted();
  const at = name => performance.getEntriesByName(name)[0].startTime;
  const tell = told => console.info("told: " + JSON.stringify(told));
  tell({ drawn: Math.max(at("first-contentful-paint"), at("timelines drawn")) });
  const told = { all: inView(), zoomed: [zoomed()], hidden: [], seen: [] };
  one(".timeline").scrollIntoView();
  told.names = [...document.querySelectorAll(".u-series .u-label")].map(name => name.innerText);
  // A click on a name hides its track, another shows it again.
  for (const name of [...document.querySelectorAll(".u-series th")].slice(1)) {
    const all = picture();
    click(name);
    const hides = await soon(() => picture() !== all) && name.getAttribute("aria-pressed") === "false";
    click(name);
    told.hidden.push(hides && await soon(() => picture() === all));
  }
  // Dragging zooms in, down to single readings; a double click shows all.
  const over = one(".u-over");
  for (let times = 0; times < 3; times++) {
    const before = inView();
    mouse("mousemove", over, 0.5, 0.4);
    mouse("mousedown", over, 0.5, 0.4);
    mouse("mousemove", over, 0.54, 0.6);
    await painted();
    mouse("mouseup", over, 0.54, 0.6);
    await soon(() => inView() < before / 10);
    told.seen.push(inView());
  }
  told.zoomed.push(zoomed());
  mouse("dblclick", over, 0.3, 0.5);
  await soon(() => inView() === told.all);
  told.zoomed.push(zoomed());
  told.again = inView();
  const before = picture();
  for (const hue of ["red", "blue", "purple", "black"]) document.documentElement.style.setProperty("--hue-" + hue, "gold");
  scheme.dispatchEvent(new Event("change"));
  told.recoloured = await soon(() => picture() !== before);
  tell(told);
});
