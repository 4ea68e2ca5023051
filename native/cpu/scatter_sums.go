package cpu

import (
	"github.com/rlx-go/rlx/internal/compiler/fusion"
	"github.com/rlx-go/rlx/internal/simd"
	"github.com/rlx-go/rlx/ir"
)

// oftenUpdated keeps what rounding leaves out of the sums in rows that more than
// fusion.SumBlock updates go to.
type oftenUpdated struct {
	places *buffer // of each row: its number among them, from 1 on, 0 for other rows
	rests  *buffer // one after the other
	count  int
}

// oftenUpdated returns the memory for the rows of a scatter, nil where it is no sum of f32
// or none can be updated so often.
func (c *compiler) oftenUpdated(x *fusion.Scatter) *oftenUpdated {
	updates := product(x.Row.Dims)
	if x.Mode != ir.ScatterAdd || x.Out.DType != ir.F32 || updates <= fusion.SumBlock {
		return nil
	}
	most := updates / (fusion.SumBlock + 1)
	return &oftenUpdated{places: c.scratch(ir.I32, product(x.RowDims)), rests: c.scratch(ir.F32, most*len(x.WindowAt))}
}

// find looks for rows that many updates go to, and reports whether there are some.
func (o *oftenUpdated) find(rows []int32, window int) bool {
	places := view[int32](o.places)[:o.places.elems]
	clear(places)
	for _, row := range rows {
		if row >= 0 {
			places[row]++
		}
	}
	o.count = 0
	for row, updates := range places {
		places[row] = 0
		if updates > fusion.SumBlock {
			o.count++
			places[row] = int32(o.count)
		}
	}
	clear(view[float32](o.rests)[:o.count*window])
	return o.count > 0
}

// sum adds updates to their rows in order. Rows that many go to are exact but for the last
// rounding.
func (s *scatterStep) sum(rows []int32, apply func(row, update int)) {
	window, places := len(s.x.WindowAt), view[int32](s.often.places)
	out, updates, rests := view[float32](s.out), view[float32](s.update), view[float32](s.often.rests)
	for i, row := range rows {
		switch {
		case row < 0:
		case places[row] == 0:
			apply(s.base(int(row)), i*window)
		default:
			at, rest := s.base(int(row)), rests[int(places[row]-1)*window:][:window]
			for w, offset := range s.x.WindowAt {
				t := simd.Total[float32]{Sum: out[at+offset], Rest: rest[w]}
				t.Add(updates[i*window+w])
				out[at+offset], rest[w] = t.Sum, t.Rest
			}
		}
	}
	for row, place := range places[:s.often.places.elems] {
		if place > 0 {
			at := s.base(row)
			for w, offset := range s.x.WindowAt {
				out[at+offset] += rests[int(place-1)*window+w]
			}
		}
	}
}
