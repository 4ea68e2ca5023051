/**
 * Finds the words of a vocabulary that a text begins with. The nodes of a level are contiguous, the
 * children of a node sorted by code unit.
 */
export class Trie {
  /** Of each node: its first child, the child after its last, the UTF-16 unit that leads to it, the value of the word that ends there or -1. */
  private readonly first: Int32Array;
  private readonly end: Int32Array;
  private readonly unit: Uint16Array;
  readonly value: Int32Array;
  /** Where the word that {@link longest} found ends. */
  found = 0;

  /** Makes a trie of words and their values. The empty word is ignored. */
  constructor(values: ReadonlyMap<string, number>) {
    const words = [...values.keys()].filter(Boolean).sort(); // by UTF-16 units
    const first = [0], end = [0], unit = [0], value = [-1];
    let level = [0, 0, words.length]; // node, and the words below it
    for (let length = 0; level.length; length++) {
      const next: number[] = [];
      for (let k = 0; k < level.length; k += 3) {
        const node = level[k]!, to = level[k + 2]!;
        let i = level[k + 1]!;
        first[node] = unit.length;
        while (i < to) {
          const letter = words[i]!.charCodeAt(length), begin = i;
          while (i < to && words[i]!.charCodeAt(length) === letter) i++;
          const ends = words[begin]!.length === length + 1;
          if (i > begin + Number(ends)) next.push(unit.length, begin + Number(ends), i);
          first.push(0);
          end.push(0);
          unit.push(letter);
          value.push(ends ? values.get(words[begin]!)! : -1);
        }
        end[node] = unit.length;
      }
      level = next;
    }
    this.first = Int32Array.from(first);
    this.end = Int32Array.from(end);
    this.unit = Uint16Array.from(unit);
    this.value = Int32Array.from(value);
  }

  /** The child of a node for a unit; 0 if there is none. The root is 0. */
  child(node: number, letter: number): number {
    let low = this.first[node]!, high = this.end[node]!;
    while (low < high) {
      const middle = low + high >> 1, unit = this.unit[middle]!;
      if (unit === letter) return middle;
      if (unit < letter) low = middle + 1;
      else high = middle;
    }
    return 0;
  }

  /** The value of the longest word at a position of a text, with its end in `found`; -1 for none. */
  longest(text: string, at: number): number {
    let value = -1;
    for (let i = at, node = 0; i < text.length && (node = this.child(node, text.charCodeAt(i)));) {
      i++;
      if (this.value[node]! < 0) continue;
      value = this.value[node]!;
      this.found = i;
    }
    return value;
  }
}
