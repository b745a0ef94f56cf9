// Numbers, names, tokens and cursor positions as text.

// -- numbers and names -------------------------------------------------------------------------------------------------

const MINUS = "−";

/** A log-probability or a score. */
export const logProb = (value) => value.toFixed(2).replace(/^-0\.00$/, "0.00").replace("-", MINUS);

/** A probability or an attention weight. */
export function percent(value) {
  if (value > 0 && value < 0.001) return "<0.1%";
  return `${(100 * value).toFixed(1)}%`;
}

export const bits = (value) => (value === null ? "∞" : value.toFixed(1));

export const quoted = (text) => `“${text}”`;

export const count = (number, singular, plural = `${singular}s`) =>
  `${number.toLocaleString("en")} ${number === 1 ? singular : plural}`;

let canvas;

/** The width of a text in pixels, in the font of pictures at a given size. */
export function textWidth(text, size) {
  canvas ??= document.createElement("canvas").getContext("2d");
  canvas.font = `${size}px ${getComputedStyle(document.documentElement).getPropertyValue("--sans")}`;
  return canvas.measureText(text).width;
}

const languageNames = new Intl.DisplayNames(["en"], { type: "language" });

/** The languages of a translator, if they are known. */
export function languagePair({ source, target }) {
  return source && target ? `${languageNames.of(source)} to ${languageNames.of(target)}` : "";
}

// -- tokens ------------------------------------------------------------------------------------------------------------
// Tokens are words, characters or subwords; in subwords ▁ stands for a space.

export const END = "</s>";
export const UNKNOWN = "<unk>";
const SPACE = "▁";

/** Join some tokens of a sentence; `all` tokens show which kind they are. */
export function joinTokens(tokens, all = tokens) {
  if (all.some((token) => token.includes(SPACE))) return tokens.join("").replaceAll(SPACE, " ").trimStart();
  return tokens.join(areCharacters(all) ? "" : " ");
}

/** The tokens of a translation, with unknown words replaced, as spans like `words`: `{text, first, end}`. */
export function tokenSpans({ units, replaced }) {
  const replacements = new Map(replaced.map(({ place, word }) => [place, word]));
  return spansOf(units.map((token, index) => replacements.get(index) ?? token));
}

export const spansOf = (tokens) => tokens.map((text, index) => ({ text, first: index, end: index + 1 }));

/** Whether a translation has words of several tokens. */
export const hasPieces = ({ units, source_units, words, source_words }) =>
  words.length < units.length || source_words.length < source_units.length;

const areCharacters = (tokens) => tokens.length > 1 && tokens.every((token) => [...token].length === 1);

export const hasCharacters = ({ units, source_units }) => areCharacters(units) || areCharacters(source_units);

/** What the tokens of a translation are called. */
export const tokenName = (translation) => (hasCharacters(translation) ? "characters" : "pieces of words");

/** What stands between the words of a translation: nothing, if they are pieces of a text without spaces. */
export const wordSeparator = ({ words, units }) =>
  words.length === units.length && (areCharacters(units) || units.some((token) => token.includes(SPACE))) ? "" : " ";

/** Indices of the tokens of `a` that are not in its longest common subsequence with `b`. */
export function differingTokens(a, b) {
  const lengths = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0)); // of common subsequences of the ends
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i][j] = a[i] === b[j] ? 1 + lengths[i + 1][j + 1] : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
    }
  }
  const differing = new Set(a.keys());
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      differing.delete(i);
      [i, j] = [i + 1, j + 1];
    } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i += 1;
    else j += 1;
  }
  return differing;
}

// -- the cursor in a text of words ---------------------------------------------------------------------------------------

const WORDS = /[^ \t\r]+/g;

/** The start position in the text of each of the given words of each line, and the end of the line. */
export function wordPositions(text, lines) {
  let lineStart = 0;
  return text.split("\n").map((line, number) => {
    let end = lineStart;
    const starts = (lines[number] ?? []).map((word) => {
      const start = Math.max(text.indexOf(word, end), end);
      end = start + word.length;
      return start;
    });
    lineStart += line.length + 1;
    return [...starts, end];
  });
}

const isInsideWord = (text, cursor) => /\S$/.test(text.slice(0, cursor)) && /^\S/.test(text.slice(cursor));

/** The words of the line before the cursor, without a word that contains the cursor. */
export function wordsBefore(text, cursor) {
  const line = text.slice(text.lastIndexOf("\n", cursor - 1) + 1, cursor);
  return (isInsideWord(text, cursor) ? line.replace(/\S+$/, "") : line).match(WORDS)?.join(" ") ?? "";
}

/**
 * Insert a word at the cursor of a field, with spaces around it; a line break ends the sentence.
 * @param attached whether the word continues the word before the cursor: spaces between them are after it then
 */
export function insertWord(field, word, attached = false) {
  const { value, selectionEnd } = field;
  const cursor = isInsideWord(value, selectionEnd) ? value.slice(0, selectionEnd).search(/\S+$/) : selectionEnd;
  const endOfWord = value.slice(0, cursor).replace(/[ \t\r]+$/, "").length;
  const continuesWord = attached && word !== "\n" && /\S/.test(value[endOfWord - 1] ?? "");
  const position = continuesWord ? endOfWord : cursor;
  const before = attached || word === "\n" || position === 0 || /\s/.test(value[position - 1]) ? "" : " ";
  const after = word === "\n" || position === value.length || /\s/.test(value[position]) ? "" : " ";
  field.setRangeText(before + word + after, position, position, "end");
  if (after) field.setSelectionRange(field.selectionEnd - 1, field.selectionEnd - 1);
}
