// Buttons, keys and a slider that go from step to step.

const KEYS = { ArrowLeft: "previous", ArrowRight: "next", Home: "first", End: "last" };
const TYPING = "input, textarea, select, [role=tab]";

export function stepper(root, { slider }, show) {
  const buttons = Object.fromEntries([...root.querySelectorAll("[data-step]")].map((one) => [one.dataset.step, one]));
  const goal = { first: () => 0, previous: () => at() - 1, next: () => at() + 1, last: () => most() };
  const at = () => Number(slider.value);
  const most = () => Number(slider.max);

  function go(step) {
    slider.value = Math.max(0, Math.min(most(), step));
    for (const name of ["first", "previous"]) disable(buttons[name], at() === 0);
    for (const name of ["next", "last"]) disable(buttons[name], at() === most());
    show(at());
  }

  // A disabled button would lose the focus, and with it the arrow keys.
  const disable = (button, is) => button.setAttribute("aria-disabled", String(is));

  for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", () => go(goal[name]()));
  slider.addEventListener("input", () => go(at()));
  root.addEventListener("keydown", (event) => {
    const name = KEYS[event.key];
    if (!name || event.defaultPrevented || event.target.matches(TYPING) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(goal[name]());
  });

  return {
    get at() {
      return at();
    },
    /** As many steps; at one of them, or at the last. */
    reset(steps, step) {
      slider.max = steps;
      go(step === null ? steps : Number(step));
    },
  };
}
