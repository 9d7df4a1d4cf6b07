// What readers paste is searched by its words. By itself the search takes --site and (11) for operators, and each word for the
// beginning of one: "a" would find all that begins with it. A word with ^1 is a whole one; the last may still be typed.
const COMMON = new Set(
  (
    "a an and any are as at be been by can could did do does for from get had has have how i if in is it its just know let make many " +
    "me much my need no not nsw of on only or our see should so some than that the their then there these they this to too use used " +
    "using want was we were what when where whether which while who why will with you your"
  ).split(" "),
);
// what readers call it -> what the pages do
const ALIKE = {
  abort: "cancel", authentication: "code", big: "large", docker: "container", email: "mail", example: "demo", faster: "slower", huge: "large",
  imbalance: "stragglers", kill: "cancel", license: "licence", min: "least", minimum: "least", multi: "several", multiple: "several",
  oom: "memory", optimisation: "change", optimization: "change", part: "window", qdel: "cancel", remove: "delete",
  rerun: "repeat", scancel: "cancel", significance: "verdict", significant: "verdict", singularity: "apptainer",
  statistical: "verdict", step: "iterations", steps: "iterations", straggler: "late", terminate: "cancel", timeout: "limit",
  walltime: "limit",
};
const SHORTEST = 4; // letters of a word that may still be typed
// A word and its plural or singular: a whole word finds nothing else, and the beginning of one finds its plural by itself.
const forms = (word, isLast) => {
  const whole = /^\p{L}+$/u.test(word) && (!isLast || word.length < SHORTEST) ? [`${word}^1`] : [word];
  if (!/^\p{L}{4,}$/u.test(word)) return whole;
  if (/[^s]s$/i.test(word)) return [...whole, `${word.slice(0, -1)}^1`];
  return isLast ? whole : [...whole, `${word}s^1`];
};
const searched = (query) => {
  const asked = query.replace(/^\s*what (is|are) (an? |the )?(?=\w+\W*$)/i, "glossary "); // what is a campaign?
  const words = asked.replace(/[^\p{L}\p{N}_"]+/gu, " ").split(" ");
  const telling = words.filter((word) => word.length > 1 && /\D/.test(word) && !COMMON.has(word.toLowerCase()));
  return (telling.length ? telling : words)
    .flatMap((word) => [ALIKE[word.toLowerCase()] ?? [], word].flat())
    .flatMap((word, n, all) => forms(word, n === all.length - 1))
    .join(" ");
};
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const isQuery = typeof message?.data === "string";
  return post.call(this, isQuery ? { ...message, data: searched(message.data) } : message, ...rest);
};
