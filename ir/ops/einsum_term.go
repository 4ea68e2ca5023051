package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// term is a value with a label for each axis: a letter, or a negative number for an axis
// of "...", -1 being the last.
type term struct {
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
func (t *term) squeeze(b *ir.Builder, dims map[rune]ir.Dim) {
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
func (t *term) diagonals(b *ir.Builder) {
	for i := 0; i < len(t.labels) && b.Err() == nil; i++ {
		j := slices.Index(t.labels[i+1:], t.labels[i])
		if j < 0 {
			continue
		}
		j += i + 1
		l := t.labels[i]
		rest := slices.Delete(slices.Delete(slices.Clone(t.labels), j, j+1), i, i+1)
		x := Transpose(b, t.value, append(otherAxes(len(t.labels), []int{i, j}), i, j)...)
		t.value, t.labels = Diagonal(b, x, 0), append(rest, l)
		i = -1 // labels have shifted
	}
}

// sumOut sums over the axes whose labels are not in wanted.
func (t *term) sumOut(b *ir.Builder, wanted []rune) {
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
func multiply(b *ir.Builder, x, y term, wanted []rune) term {
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
	out := term{DotGeneral(b, x.value, y.value, d), append(batch, free...)}
	out.sumOut(b, wanted)
	return out
}
