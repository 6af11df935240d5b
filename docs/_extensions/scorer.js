// Order of search results: pages to read before single names, the changelog and source code last.
var Scorer = {
  score: result => {
    const [docname, , , , score] = result;
    if (/^(concepts|getting-started|auto_tutorials|howto|faq|which-tool)/.test(docname)) return score + 14;
    if (/^(project|_modules)/.test(docname)) return score - 10;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 8, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
