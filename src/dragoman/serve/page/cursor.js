// Words of a text, and where its cursor is among them.

const WORDS = /[^ \t\r]+/g;

/** Of each line, its words and where they begin in the text. */
export function lines(text) {
  let start = 0;
  return text.split("\n").map((line) => {
    const words = [...line.matchAll(WORDS)].map((found) => ({ word: found[0], at: start + found.index }));
    start += line.length + 1;
    return words;
  });
}

/** The words of the line before the cursor. A word within which it stands does not count. */
export function before(text, cursor) {
  const line = text.slice(text.lastIndexOf("\n", cursor - 1) + 1, cursor);
  const within = /\S$/.test(line) && /^\S/.test(text.slice(cursor));
  return (within ? line.replace(/\S+$/, "") : line).match(WORDS)?.join(" ") ?? "";
}

/** Put a word where the cursor is, with spaces around it; a line break stands for the end of a sentence. */
export function insert(field, word) {
  const { value, selectionEnd } = field;
  const within = /\S$/.test(value.slice(0, selectionEnd)) && /^\S/.test(value.slice(selectionEnd));
  const at = within ? value.slice(0, selectionEnd).search(/\S+$/) : selectionEnd;
  const space = word === "\n" || at === 0 || /\s/.test(value[at - 1]) ? "" : " ";
  const after = word === "\n" || at === value.length || /\s/.test(value[at]) ? "" : " ";
  field.setRangeText(space + word + after, at, at, "end");
  if (after) field.setSelectionRange(field.selectionEnd - 1, field.selectionEnd - 1);
}
