// Which units two sentences do not share.

/** The numbers of the units of one that are not in their longest common subsequence. */
export function unshared(one, other) {
  const long = lengths(one, other);
  const found = new Set(one.keys());
  for (let i = 0, j = 0; i < one.length && j < other.length; ) {
    if (one[i] === other[j]) {
      found.delete(i);
      [i, j] = [i + 1, j + 1];
    } else if (long[i + 1][j] >= long[i][j + 1]) i += 1;
    else j += 1;
  }
  return found;
}

/** How long the longest common subsequences of all ends of two sentences are. */
function lengths(one, other) {
  const long = Array.from({ length: one.length + 1 }, () => new Array(other.length + 1).fill(0));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      long[i][j] = one[i] === other[j] ? 1 + long[i + 1][j + 1] : Math.max(long[i + 1][j], long[i][j + 1]);
    }
  }
  return long;
}
