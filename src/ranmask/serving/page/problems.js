// What went wrong, said where it happened, with a way to try again where that may help.

import { by, fill, make } from "./dom.js";

export function tell(place, message, again = null) {
  const box = by(place);
  box.hidden = false;
  fill(box, make("p", {}, message));
  if (again === null) return;
  const button = make("button", { type: "button" }, "Try again");
  button.addEventListener("click", () => {
    quiet(place);
    again();
  });
  box.append(button);
}

export function quiet(...places) {
  for (const place of places) {
    by(place).hidden = true;
    fill(by(place));
  }
}
