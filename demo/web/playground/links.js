// Parts of the views that belong together: to a line of the program, or to a tensor.

/**
 * What a part belongs to.
 * @typedef {object} Link
 * @property {readonly number[]} [lines] of the program
 * @property {readonly string[]} [names] of tensors
 */

/** Whether two parts belong together. @param {Link | undefined} one @param {Link} other */
export const linked = (one, { lines = [], names = [] }) =>
  one !== undefined && ((one.lines ?? []).some((line) => lines.includes(line)) || (one.names ?? []).some((name) => names.includes(name)));

/** The part that the pointer is over, or else the one that was clicked last, for all views to mark what belongs to it. */
export class Links {
  #views = [];
  #over;
  #pinned;
  #shown;

  /** @param {(link: Link | undefined) => void} mark marks the parts of a view that are linked to one, and no others */
  add(mark) { this.#views.push(mark); }

  /** The pointer is over a part; over none without one. */
  over(link) {
    this.#over = link;
    this.#show();
  }

  /** Keeps the marks of a part until another is kept. */
  pin(link) {
    this.#pinned = link;
    this.#show();
  }

  clear() {
    this.#over = undefined;
    this.pin(undefined);
  }

  /** Marks anew: views have other parts than before. */
  refresh() { for (const mark of this.#views) mark(this.#shown); }

  #show() {
    const link = this.#over ?? this.#pinned;
    if (link === this.#shown) return;
    this.#shown = link;
    this.refresh();
  }
}
