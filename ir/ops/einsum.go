package ops

import (
	"slices"
	"strings"

	"github.com/rlx-go/rlx/internal/permute"
	"github.com/rlx-go/rlx/ir"
)

// OpEinsum is Einstein summation.
const OpEinsum ir.Op = "einsum"

// EinsumAttrs hold the equation.
type EinsumAttrs struct{ Equation string }

// Visit shows the attributes.
func (a *EinsumAttrs) Visit(v ir.AttrVisitor) { v.Text("equation", &a.Equation) }

func init() {
	defineComposite(composite{
		op: OpEinsum, doc: "Einstein summation, as in \"bij,bjk->bik\": each letter names an axis, those that the result does not name are summed " +
			"over, a repeated letter in one operand takes its diagonal. \"...\" stands for the remaining axes, which are broadcast. Without an arrow " +
			"the result has the axes of \"...\" and then the letters that occur once, in alphabetical order. Operands are multiplied from left to right.",
		operands: []string{"operands..."}, types: numbers, newAttrs: func() ir.Attrs { return &EinsumAttrs{} },
		constraints: []string{
			"there is at least one operand; all have one element type",
			"the equation names all operands and the axes of each",
			"axes of one letter have one size, or size 1",
		},
		check: oneDType,
		body: func(b *ir.Builder, n *ir.Node, in []ir.Value) ir.Value {
			terms, out, err := parseEinsum(n.Attrs().(*EinsumAttrs).Equation, in)
			if err != nil {
				b.Failf(OpEinsum, in, err)
				return ir.Value{}
			}
			return einsum(b, terms, out)
		},
	})
}

// Einsum returns the Einstein summation of the operands, as numpy.einsum, for an equation
// such as "bij,bjk->bik". Operands are contracted from left to right.
func Einsum(b *ir.Builder, equation string, in ...ir.Value) ir.Value {
	if b.Err() == nil && len(in) == 0 {
		b.Failf(OpEinsum, nil, ir.Shapef("there are no operands"))
	}
	return b.Add1(OpEinsum, &EinsumAttrs{equation}, in...)
}

// parseEinsum returns the operands with their labels, and the labels of the result.
func parseEinsum(equation string, in []ir.Value) ([]labelled, []rune, error) {
	left, right, arrow := strings.Cut(strings.ReplaceAll(equation, " ", ""), "->")
	names := strings.Split(left, ",")
	if len(names) != len(in) {
		return nil, nil, ir.Attrf("equation %q names %d operands, not %d", equation, len(names), len(in))
	}
	terms, dots := make([]labelled, len(in)), 0
	for i, name := range names {
		labels, err := parseLabels(name, in[i].Rank())
		if err != nil {
			return nil, nil, err
		}
		if len(labels) != in[i].Rank() {
			return nil, nil, ir.Attrf("equation: %q names %d axes of operand %d, which is %s", name, len(labels), i, in[i].Type())
		}
		terms[i] = labelled{in[i], labels}
		if strings.Contains(name, "...") {
			dots = max(dots, len(labels)-len(name)+3)
		}
	}
	if !arrow {
		return terms, implicitResult(terms, dots), nil
	}
	named := len(strings.Replace(right, "...", "", 1))
	rank := named
	if strings.Contains(right, "...") {
		rank += dots
	}
	out, err := parseLabels(right, rank)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range out {
		if slices.Contains(out[:i], l) {
			return nil, nil, ir.Attrf("equation: the result %q names %q twice", right, string(l))
		}
		if !slices.ContainsFunc(terms, func(t labelled) bool { return slices.Contains(t.labels, l) }) {
			return nil, nil, ir.Attrf("equation: no operand has the axis %q of the result %q", string(l), right)
		}
	}
	return terms, out, nil
}

// parseLabels returns the labels of a value of the given rank.
func parseLabels(name string, rank int) ([]rune, error) {
	before, after, dots := strings.Cut(name, "...")
	labels := []rune(before)
	if dots {
		for k := rank - len(before) - len(after); k > 0; k-- {
			labels = append(labels, rune(-k))
		}
		labels = append(labels, []rune(after)...)
	}
	for _, l := range labels {
		if l >= 0 && (l < 'A' || l > 'Z') && (l < 'a' || l > 'z') {
			return nil, ir.Attrf("equation: %q is no letter in %q", string(l), name)
		}
	}
	return labels, nil
}

// implicitResult returns the labels of the result of an equation without an arrow.
func implicitResult(terms []labelled, dots int) []rune {
	count := map[rune]int{}
	for _, t := range terms {
		for _, l := range t.labels {
			count[l]++
		}
	}
	out := make([]rune, dots)
	for i := range out {
		out[i] = rune(i - dots)
	}
	for l := 'A'; l <= 'z'; l++ {
		if count[l] == 1 {
			out = append(out, l)
		}
	}
	return out
}

func einsum(b *ir.Builder, terms []labelled, out []rune) ir.Value {
	dims, err := labelSizes(terms)
	if err != nil {
		b.Failf(OpEinsum, nil, err)
		return ir.Value{}
	}
	for i := range terms {
		terms[i].squeeze(b, dims)
		terms[i].diagonals(b)
		if b.Err() != nil {
			return ir.Value{}
		}
	}
	product := terms[0]
	for i := range terms {
		wanted := slices.Clone(out)
		for _, t := range terms[i:][1:] {
			wanted = append(wanted, t.labels...)
		}
		if i == 0 {
			product.sumOut(b, wanted)
			continue
		}
		terms[i].sumOut(b, slices.Concat(wanted, product.labels))
		product = multiply(b, product, terms[i], wanted)
		if b.Err() != nil {
			return ir.Value{}
		}
	}
	perm := make([]int, len(out))
	for i, l := range out {
		perm[i] = slices.Index(product.labels, l)
	}
	if len(perm) == 0 {
		return product.value
	}
	return Transpose(b, product.value, perm...)
}

// labelSizes returns the size of each label; axes of size 1 are broadcast.
func labelSizes(terms []labelled) (map[rune]ir.Dim, error) {
	dims := map[rune]ir.Dim{}
	for _, t := range terms {
		for i, l := range t.labels {
			d := t.value.Dim(i)
			switch known, ok := dims[l]; {
			case !ok || known.Is(1):
				dims[l] = d
			case d != known && !d.Is(1):
				return nil, ir.Shapef("axes %s have the sizes %s and %s", labelName(l), known, d)
			}
		}
	}
	return dims, nil
}

// labelled is a value with a label for each axis: a letter, or a negative number for an axis
// of "...", -1 being the last.
type labelled struct {
	value  ir.Value
	labels []rune
}

func labelName(l rune) string {
	if l < 0 {
		return `of "..."`
	}
	return `"` + string(l) + `"`
}

// squeeze removes axes of size 1 along which other operands are longer.
func (t *labelled) squeeze(b *ir.Builder, dims map[rune]ir.Dim) {
	var drop []int
	var kept []rune
	for i, l := range t.labels {
		if t.value.Dim(i).Is(1) && !dims[l].Is(1) {
			drop = append(drop, i)
		} else {
			kept = append(kept, l)
		}
	}
	t.value, t.labels = Squeeze(b, t.value, drop...), kept
}

// diagonals merges axes with one label into their diagonal.
func (t *labelled) diagonals(b *ir.Builder) {
	for i := 0; i < len(t.labels) && b.Err() == nil; i++ {
		j := slices.Index(t.labels[i+1:], t.labels[i])
		if j < 0 {
			continue
		}
		j += i + 1
		l := t.labels[i]
		rest := slices.Delete(slices.Delete(slices.Clone(t.labels), j, j+1), i, i+1)
		x := Transpose(b, t.value, append(permute.Others(len(t.labels), []int{i, j}), i, j)...)
		t.value, t.labels = Diagonal(b, x, 0), append(rest, l)
		i = -1 // labels have shifted
	}
}

// sumOut sums over the axes whose labels are not in wanted.
func (t *labelled) sumOut(b *ir.Builder, wanted []rune) {
	var drop []int
	var kept []rune
	for i, l := range t.labels {
		if slices.Contains(wanted, l) {
			kept = append(kept, l)
		} else {
			drop = append(drop, i)
		}
	}
	t.value, t.labels = sumOver(b, t.value, drop), kept
}

// multiply returns the product of two terms, contracted over shared labels that are not in
// wanted.
func multiply(b *ir.Builder, x, y labelled, wanted []rune) labelled {
	var d DotAttrs
	var batch, free []rune
	for i, l := range x.labels {
		j := slices.Index(y.labels, l)
		switch {
		case j < 0:
			free = append(free, l)
		case slices.Contains(wanted, l):
			d.LhsBatch, d.RhsBatch = append(d.LhsBatch, i), append(d.RhsBatch, j)
			batch = append(batch, l)
		default:
			d.LhsContract, d.RhsContract = append(d.LhsContract, i), append(d.RhsContract, j)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			free = append(free, l)
		}
	}
	out := labelled{DotGeneral(b, x.value, y.value, d), append(batch, free...)}
	out.sumOut(b, wanted)
	return out
}
