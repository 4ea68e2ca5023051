package rlx

import (
	"cmp"
	"math"
	"slices"

	"github.com/rlx-go/rlx/ir"
)

// SplitOptions are the options of [SplitRows].
type SplitOptions struct {
	// Seed chooses the rows: another seed, other rows.
	Seed uint32
	// Stratify names a tensor, such as the labels: rows with equal values of it are a class, and each part has its share
	// of each class, up to one row. "" takes no notice of classes.
	Stratify string
}

// SplitRows divides the rows of data, along the first axis of each tensor, into rows to train with and rows to test with: the
// fraction test of them, rounded, and at least one in each part. Rows keep their order; tensors are copies. The rows
// depend on their number, the seed and the classes alone, and splitRows of the TypeScript package chooses the same ones. The error is of
// kind [ir.ErrAttr] for a fraction that is not between 0 and 1 and for a class of a single row, [ir.ErrName] if Stratify is
// unknown, [ir.ErrShape] for fewer than two rows or tensors with different numbers of them, and those of [Tensor.Check].
func SplitRows(data Inputs, test float64, o SplitOptions) (training, testing Inputs, err error) {
	if !(test > 0 && test < 1) {
		return nil, nil, ir.Attrf("the fraction of rows to test with is %g: it must be between 0 and 1", test)
	}
	rows, err := rowsOf(data, 2)
	if err != nil {
		return nil, nil, err
	}
	classes, err := o.classes(data, rows)
	if err != nil {
		return nil, nil, err
	}
	tested := make([]bool, rows)
	for i, n := range shares(classes, rows, min(max(int(math.Round(test*float64(rows))), 1), rows-1)) {
		class := classes[i]
		slices.SortFunc(class, func(a, b int) int { return cmp.Compare(o.rank(a), o.rank(b)) })
		for _, row := range class[:n] {
			tested[row] = true
		}
	}
	training, testing = Inputs{}, Inputs{}
	for name, x := range data {
		training[name], testing[name] = rowsWhere(x, tested, false), rowsWhere(x, tested, true)
	}
	return training, testing, nil
}

// classes returns the rows of each class, in the order of their first rows.
func (o SplitOptions) classes(data Inputs, rows int) ([][]int, error) {
	if o.Stratify == "" {
		all := make([]int, rows)
		for row := range all {
			all[row] = row
		}
		return [][]int{all}, nil
	}
	labels, known := data[o.Stratify]
	if !known {
		return nil, ir.Errorf(ir.ErrName, "Stratify is %q, which is none of the tensors", o.Stratify)
	}
	var classes [][]int
	places := map[string]int{}
	size := len(labels.Data) / rows
	for row := range rows {
		label := string(labels.Data[row*size : (row+1)*size])
		at, known := places[label]
		if !known {
			at = len(classes)
			places[label], classes = at, append(classes, nil)
		}
		classes[at] = append(classes[at], row)
	}
	for _, class := range classes {
		if len(class) == 1 {
			return nil, ir.Attrf("Stratify is %q: row %d is the only one of its class; each class must have two rows or more", o.Stratify, class[0])
		}
	}
	return classes, nil
}

// shares returns the number of rows of each class among n of all rows: by largest remainders, the first class of equal ones.
func shares(classes [][]int, rows, n int) []int {
	out, order, left := make([]int, len(classes)), make([]int, len(classes)), n
	share := func(i int) int64 { return int64(len(classes[i])) * int64(n) } // times rows
	for i := range classes {
		out[i], order[i] = int(share(i)/int64(rows)), i
		left -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(share(b)%int64(rows), share(a)%int64(rows)) })
	for _, i := range order[:left] {
		out[i]++
	}
	return out
}

// rank returns the place of a row in the order in which rows are chosen: a bijection of 32 bits for each seed.
func (o SplitOptions) rank(row int) uint32 {
	return mixed(mixed(uint32(row)) ^ mixed(o.Seed+0x9e3779b9))
}

// mixed is the last step of MurmurHash3 (A. Appleby), which spreads each bit over all.
func mixed(h uint32) uint32 {
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// rowsWhere returns the rows of x that are chosen or not, in order.
func rowsWhere(x Tensor, chosen []bool, as bool) Tensor {
	out, size := Tensor{DType: x.DType, Dims: slices.Clone(x.Dims)}, len(x.Data)/len(chosen)
	out.Dims[0] = 0
	for row, c := range chosen {
		if c == as {
			out.Data = append(out.Data, x.Data[row*size:(row+1)*size]...)
			out.Dims[0]++
		}
	}
	return out
}
