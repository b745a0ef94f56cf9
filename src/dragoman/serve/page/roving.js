// Many things that are one stop of the Tab key: the arrow keys go from one to the next.

export const VERTICAL = { ArrowUp: -1, ArrowDown: 1 };
const BOTH = { ...VERTICAL, ArrowLeft: -1, ArrowRight: 1 };

export function roving(group, items, { keys = BOTH, arrived = () => {} } = {}) {
  const stop = (at) => items.forEach((item, other) => (item.tabIndex = other === at ? 0 : -1));
  const goal = (key, at) => {
    if (key === "Home") return 0;
    if (key === "End") return items.length - 1;
    return key in keys ? (at + keys[key] + items.length) % items.length : -1;
  };
  group.addEventListener("keydown", (event) => {
    const at = items.indexOf(event.target);
    const to = at < 0 || event.ctrlKey || event.altKey || event.metaKey ? -1 : goal(event.key, at);
    if (to < 0) return;
    event.preventDefault();
    items[to].focus();
    arrived(to);
  });
  group.addEventListener("focusin", (event) => {
    if (items.includes(event.target)) stop(items.indexOf(event.target));
  });
  stop(0);
}
