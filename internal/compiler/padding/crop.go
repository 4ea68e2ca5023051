package padding

import "github.com/rlx-go/rlx/ir"

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

// Crops returns the crops of the outputs that are not states, for true sizes and those of a padded graph.
// The errors are those of [ir.Dim.Bind].
func (a *Analysis) Crops(sizes, bound map[string]int) ([]Crop, error) {
	var crops []Crop
	for i, o := range a.graph.Outputs() {
		if o.State {
			continue
		}
		c, err := cropOf(o.Name, a.Output(i), sizes, bound)
		if err != nil {
			return nil, err
		}
		crops = append(crops, c)
	}
	return crops, nil
}

func cropOf(name string, extents []ir.Extent, sizes, bound map[string]int) (Crop, error) {
	c := Crop{Name: name, Dims: []int{}}
	for _, e := range extents {
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
