// What models read and write: words, or pieces of words in which ▁ stands for a space.

export const END = "</s>";
export const UNKNOWN = "<unk>";
const SPACE = "▁";

/** The text of some units of a sentence, all of which tell what kind of units they are. */
export function joined(some, all = some) {
  if (all.some((unit) => unit.includes(SPACE))) return some.join("").replaceAll(SPACE, " ").trimStart();
  const characters = all.length > 1 && all.every((unit) => [...unit].length === 1);
  return some.join(characters ? "" : " ");
}

/** A translation's units as they are shown: unknown ones are replaced. */
export function shown({ units, replaced }) {
  const instead = new Map(replaced.map((one) => [one.place, one.word]));
  return units.map((unit, place) => instead.get(place) ?? unit);
}

export const shortened = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
