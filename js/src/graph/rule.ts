// Rules for initial values.

/**
 * A rule for initial values, with its numbers, as Go's `ir.Initial`: `@rlx-go/rlx/nn` has a function for each, and
 * documents them. Graphs carry it in their text form.
 */
export interface InitialRule {
  readonly rule: string;
  readonly args: readonly number[];
}

/** Whether a value is a rule, of any name. */
export const isRule = (initial: unknown): initial is InitialRule =>
  typeof (initial as InitialRule | null)?.rule === 'string' && Array.isArray((initial as InitialRule).args) && (initial as InitialRule).args.every(Number.isFinite);

/** The rule of a number, a word or a rule; undefined for elements and numbers that are not finite. */
export function ruleOf(initial: unknown): InitialRule | undefined {
  if (typeof initial === 'number') return Number.isFinite(initial) ? { rule: 'constant', args: [initial] } : undefined;
  if (initial === 'glorot' || initial === 'he') return { rule: `${initial}_uniform`, args: [] };
  return isRule(initial) ? initial : undefined;
}

/** Reads a rule as the compiler writes it: `normal(0,0.02)`. */
export function parseRule(text: string): InitialRule | undefined {
  const [, rule, args] = /^(\w+)(?:\((.*)\))?$/.exec(text) ?? [];
  return rule ? { rule, args: args ? args.split(',').map(Number) : [] } : undefined;
}

/** A rule with the fans of a weight replaced by numbers, as `Resolve` of Go's package nn. */
export function resolved({ rule, args }: InitialRule, shape: readonly number[]): InitialRule {
  const [, law, form] = /^(glorot|he|lecun)_(uniform|normal)$/.exec(rule) ?? [];
  if (!law) return { rule, args };
  const out = shape.at(-1) ?? 1, into = shape.at(-2) ?? out, field = shape.slice(0, -2).reduce((n, d) => n * d, 1);
  const fans = Math.max(1, field * into) + (law === 'glorot' ? Math.max(1, field * out) : 0), scale = law === 'lecun' ? 1 : 2;
  const bound = Math.sqrt(3 * scale / fans);
  return form === 'normal' ? { rule: 'normal', args: [0, Math.sqrt(scale / fans)] } : { rule: 'uniform', args: [-bound, bound] };
}
