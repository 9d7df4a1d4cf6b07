// What readers paste is searched by its words. By itself the search takes --site and (11) for operators, and each word for the
// beginning of one: "a" would find all that begins with it. A word with ^1 is a whole one; the last may still be typed.
const COMMON = new Set(
  (
    "a an and any are as at be been by can could did do does for from get had has have how i if in is it its make many me my need " +
    "no not nsw of on or our should so than that the their then there these they this to use used using want was we were what when " +
    "where which who why will with you your"
  ).split(" "),
);
// what readers call it -> what the pages do
const ALIKE = {
  abort: "cancel", kill: "cancel", qdel: "cancel", scancel: "cancel", license: "licence", min: "least", minimum: "least",
  multiple: "several", oom: "memory", singularity: "apptainer", terminate: "cancel", timeout: "limit", walltime: "limit",
};
const SHORTEST = 4; // letters of a word that may still be typed
const searched = (query) => {
  const words = query.replace(/[^\p{L}\p{N}_"]+/gu, " ").split(" ");
  const telling = words.filter((word) => word.length > 1 && /\D/.test(word) && !COMMON.has(word.toLowerCase()));
  return (telling.length ? telling : words)
    .flatMap((word) => [ALIKE[word.toLowerCase()] ?? [], word].flat())
    .map((word, n, all) => (/^\p{L}+$/u.test(word) && (n < all.length - 1 || word.length < SHORTEST) ? `${word}^1` : word))
    .join(" ");
};
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const isQuery = typeof message?.data === "string";
  return post.call(this, isQuery ? { ...message, data: searched(message.data) } : message, ...rest);
};
