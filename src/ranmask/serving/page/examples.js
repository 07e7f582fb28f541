// Texts of our own, by the class that they are about.

export const EXAMPLES = [
  {
    label: "World",
    name: "A ceasefire",
    text: "Rebels and government troops signed a ceasefire in the capital after weeks of fighting that drove thousands of refugees across the border",
  },
  {
    label: "Sports",
    name: "A cup final",
    text: "The striker scored twice in the second half and the coach praised a young team that won the cup final after extra time",
  },
  {
    label: "Business",
    name: "Oil prices",
    text: "Oil prices climbed to a record high on Monday as traders worried about supplies from the Gulf and investors sold shares of airlines and retailers",
  },
  {
    label: "Sci/Tech",
    name: "A telescope",
    text: "Astronomers say a new space telescope found water on a distant planet and the software that reads its images is free to download",
  },
  {
    label: "positive",
    name: "A film somebody loved",
    text: "A wonderful film , superb acting and a moving , perfect story that stays with you long after the lights come on",
  },
  {
    label: "negative",
    name: "A film somebody left",
    text: "A dull , tedious mess with a predictable plot and lifeless acting that wastes two hours and a good cast",
  },
  {
    label: "positive",
    name: "A film in between",
    text: "The first half is slow and silly but the second is funny and warm , and the ending is honest",
  },
  {
    label: "entailment",
    name: "A street musician",
    premise: "A man in a red coat plays the guitar on a crowded street",
    text: "A man is making music outside",
  },
];
