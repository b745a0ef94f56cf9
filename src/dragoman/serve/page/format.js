// Numbers and names as people read them.

const MINUS = "−";

/** A log-probability or a score. */
export const logProb = (value) => value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", MINUS);

/** A probability or a weight. */
export function percent(value) {
  if (value > 0 && value < 0.001) return "<0.1%";
  return `${(100 * value).toFixed(1)}%`;
}

export const bits = (value) => (value === null ? "∞" : value.toFixed(1));

export const quoted = (text) => `“${text}”`;

export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

const names = new Intl.DisplayNames(["en"], { type: "language" });

/** The languages of a translator, if they are known. */
export function languages({ source, target }) {
  return source && target ? `${names.of(source)} to ${names.of(target)}` : "";
}
