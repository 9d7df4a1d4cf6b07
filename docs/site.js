// What readers paste is searched by its words. By itself the search takes --site and (11) for operators, and each word for the
// beginning of one: "a" would find all that begins with it. A word with ^1 is a whole one; the last may still be typed.
const COMMON = new Set(
  ("a an and any are as at be been by can could did do does for from had has have how i if in is it its me my no not of on or our " +
   "should so than that the their then there these they this to was we were what when where which who why will with you your get make need nsw use used using want").split(" "));
const words = (text) => text.replace(/[^\p{L}\p{N}_"]+/gu, " ").split(" ").filter((word) => word.length > 1 && /\D/.test(word) && !COMMON.has(word.toLowerCase()));
const ALIKE = {
  abort: "cancel", kill: "cancel", qdel: "cancel", scancel: "cancel", license: "licence", min: "least", minimum: "least",
  multiple: "several", oom: "memory", singularity: "apptainer", terminate: "cancel", timeout: "limit", walltime: "limit",
};
const alike = (word) => [ALIKE[word.toLowerCase()] ?? [], word].flat();
const whole = (word, n, all) => (n < all.length - 1 && /^\p{L}+$/u.test(word) ? `${word}^1` : word);
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const data = message && typeof message.data === "string" ? words(message.data).flatMap(alike).map(whole).join(" ") : "";
  return post.call(this, data ? { ...message, data } : message, ...rest);
};
