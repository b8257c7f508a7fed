// What two runs of the same edit say about each other.

/**
 * @param {import("./edit.js").Edit} fast with speculation
 * @param {import("./edit.js").Edit} plain without
 * @param {boolean} together they ran at the same time
 * @returns {{equal: boolean, title: string, about: string} | null} null as long as one is missing
 */
export function verdict(fast, plain, together) {
  if (!fast?.complete || !plain?.complete) return null;
  const passes = `${count(fast.passes.length, "forward pass", "forward passes")} instead of ${plain.passes.length}`;
  if (fast.answer !== plain.answer) {
    const line = firstDifference(fast.answer.split("\n"), plain.answer.split("\n")) + 1;
    return {
      equal: false,
      title: `The answers differ from line ${line} on`,
      about:
        "In bfloat16 or float16 two almost equally likely tokens can fall either way, with any change of batch size; " +
        "in float32 this must not happen: please report it.",
    };
  }
  const ratio = plain.rate && fast.rate ? `${(fast.rate / plain.rate).toFixed(1)} times as fast` : "The same answer";
  return {
    equal: true,
    title: `${ratio}, and not one character is different`,
    about:
      `${count(fast.tokens, "token", "tokens")} in ${passes}. ` +
      (together
        ? "The two ran at the same time and shared the machine, so both were slower than alone."
        : "One ran after the other, each with the machine to itself; compared is the writing, not the reading before it."),
  };
}

function firstDifference(one, other) {
  const at = one.findIndex((line, n) => line !== other[n]);
  return at < 0 ? one.length : at;
}

function count(number, one, many) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
