// What models sort, by their classes, and texts of our own to begin with; the first is shown.

export const KINDS = [
  {
    labels: ["World", "Sports", "Business", "Sci/Tech"],
    sorts: "news into four topics",
    examples: [
      {
        name: "Oil prices",
        text: "Oil prices climbed to a record high on Monday as traders worried about supplies from the Gulf and investors sold shares of airlines and retailers",
      },
      {
        name: "A cup final",
        text: "The striker scored twice in the second half and the coach praised a young team that won the cup final after extra time",
      },
      {
        name: "A telescope",
        text: "Astronomers say a new space telescope found water on a distant planet and the software that reads its images is free to download",
      },
      {
        name: "A ceasefire",
        text: "Rebels and government troops signed a ceasefire in the capital after weeks of fighting that drove thousands of refugees across the border",
      },
    ],
  },
  {
    labels: ["negative", "positive"],
    sorts: "film reviews into positive and negative",
    examples: [
      {
        name: "A film somebody loved",
        text: "A wonderful film , superb acting and a moving , perfect story that stays with you long after the lights come on",
      },
      {
        name: "A film somebody left",
        text: "A dull , tedious mess with a predictable plot and lifeless acting that wastes two hours and a good cast",
      },
      {
        name: "A film in between",
        text: "The first half is slow and silly but the second is funny and warm , and the ending is honest",
      },
    ],
  },
  {
    labels: ["entailment", "neutral", "contradiction"],
    pairs: true,
    sorts: "pairs of sentences: does the second follow from the first?",
    examples: [
      {
        name: "A street musician",
        premise: "A man in a red coat plays the guitar on a crowded street",
        text: "A man is making music outside",
      },
    ],
  },
];
