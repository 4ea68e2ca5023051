// Package padded describes, by sizes alone, what a padded graph computes: the true sizes that it serves,
// and the location of the true elements in its outputs. Package padding derives the description of a
// graph, and files of plans with open sizes contain it.
package padded

import (
	"math"
	"strings"

	"github.com/rlx-go/rlx/ir"
	"github.com/rlx-go/rlx/ir/dtype"
)

// sizePrefix begins the names of the inputs of a padded graph that hold true sizes.
const sizePrefix = "size:"

// MaxSize is the largest true size.
const MaxSize = math.MaxInt32

// SizeOf returns the size that an input of a padded graph holds, an i32 of rank 0, or false for another
// input.
func SizeOf(input string) (ir.Dim, bool) {
	text, is := strings.CutPrefix(input, sizePrefix)
	if !is {
		return ir.Dim{}, false
	}
	d, err := ir.ParseDim(text)
	return d, err == nil
}

// SizeInput returns the name of the input that holds a true size.
func SizeInput(d ir.Dim) string { return sizePrefix + d.String() }

// Fit is the description of a padded graph, for any sizes of its symbols.
type Fit struct {
	// Sizes are sizes of arrays, which the bound sizes must not make smaller.
	Sizes []ir.Dim
	// Least are sizes that the true sizes must make valid.
	Least []ir.Dim
	// Outputs are the outputs that are not states.
	Outputs []Output
}

// Output is an output of a padded graph: its axes are products of parts, each of which has the true
// elements at its start.
type Output struct {
	Name  string
	DType dtype.DType
	Axes  []ir.Extent
}

// Crop is the location of the true elements of an output in the padded one. Both are reshaped so that
// the elements are at the start of each axis.
type Crop struct {
	// Name is the name of the output.
	Name string
	// Dims is the true shape.
	Dims []int
	// Box and Full are the true and the padded sizes of the axes of the reshaped output.
	Box, Full []int
}

// Check returns an error unless the graph padded to the bound sizes serves the true sizes, which an exact
// graph may still do.
func (f *Fit) Check(sizes, bound map[string]int) error {
	for _, d := range f.Least {
		if _, err := d.Bind(sizes); err != nil {
			return err
		}
	}
	for _, d := range f.Sizes {
		n, err := d.Bind(sizes)
		if err != nil {
			return err
		}
		limit, err := d.Bind(bound)
		if err != nil {
			return err
		}
		if n > limit || limit > MaxSize {
			return ir.Shapef("size %s is %d where %d elements are compiled for, and at most %d", d, n, limit, MaxSize)
		}
	}
	return nil
}

// Crops returns the crops of the outputs, for true sizes and those of a padded graph. The errors are
// those of [ir.Dim.Bind].
func (f *Fit) Crops(sizes, bound map[string]int) ([]Crop, error) {
	crops := make([]Crop, len(f.Outputs))
	for i, o := range f.Outputs {
		var err error
		if crops[i], err = o.crop(sizes, bound); err != nil {
			return nil, err
		}
	}
	return crops, nil
}

func (o *Output) crop(sizes, bound map[string]int) (Crop, error) {
	c := Crop{Name: o.Name, Dims: []int{}}
	for _, e := range o.Axes {
		all := 1
		for _, d := range e {
			n, err := d.Bind(sizes)
			if err != nil {
				return c, err
			}
			most, err := d.Bind(bound)
			if err != nil {
				return c, err
			}
			c.Box, c.Full, all = append(c.Box, n), append(c.Full, most), all*n
		}
		c.Dims = append(c.Dims, all)
	}
	return c, nil
}
