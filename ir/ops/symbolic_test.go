package ops_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/rlx-go/rlx/ir"
)

// at is an axis of an operand.
type at struct{ operand, axis int }

// symbolic lists cases of golden, with the axes that are symbolic in them.
var symbolic = map[string]map[string][]at{
	"batch matrix":           {"b": {{0, 0}}, "k": {{0, 2}, {1, 0}}, "n": {{1, 1}}},
	"broadcast batches":      {"b": {{0, 0}}, "c": {{1, 0}}, "m": {{0, 2}}},
	"dot_general":            {"b": {{0, 1}, {1, 0}}, "k": {{0, 0}, {1, 3}}},
	"conv plain":             {"b": {{0, 0}}, "c": {{0, 1}, {1, 1}}, "o": {{1, 0}}, "h": {{0, 2}}},
	"conv with batch groups": {"b": {{0, 0}}, "n": {{0, 2}}},
	"conv with strides, padding, dilations and groups": {"b": {{0, 0}}, "w": {{0, 3}}},
	"windows":                        {"b": {{0, 0}}, "h": {{0, 2}}, "w": {{0, 3}}},
	"take":                           {"b": {{0, 0}}, "n": {{0, 1}}},
	"take_along_axis":                {"n": {{0, 1}}},
	"cumsum":                         {"b": {{0, 0}}, "n": {{0, 1}}},
	"softmax":                        {"b": {{0, 0}}, "n": {{0, 1}}},
	"log_softmax":                    {"b": {{0, 0}}, "n": {{0, 1}}},
	"cross_entropy":                  {"c": {{0, 1}}},
	"max_pool":                       {"b": {{0, 0}}, "w": {{0, 2}}, "c": {{0, 3}}},
	"avg_pool not counting padding":  {"b": {{0, 0}}, "w": {{0, 2}}},
	"conv2d":                         {"b": {{0, 0}}, "w": {{0, 2}}},
	"layer_norm":                     {"b": {{0, 0}}, "n": {{0, 2}, {1, 1}, {2, 1}}},
	"linear":                         {"b": {{0, 0}}, "i": {{0, 1}, {1, 0}}, "o": {{1, 1}, {2, 0}}},
	"embedding":                      {"v": {{0, 0}}, "d": {{0, 1}}},
	"attention with a bias":          {"b": {{0, 0}, {1, 0}, {2, 0}}, "m": {{0, 2}}, "n": {{1, 2}, {2, 2}, {3, 2}}},
	"attention with grouped queries": {"b": {{0, 0}, {1, 0}, {2, 0}}, "t": {{0, 2}, {1, 2}, {2, 2}}},
}

// TestSymbolicSizesSurviveDifferentiation compares the transposed derivative
// of a graph with symbolic sizes, bound afterwards, with that of the graph of
// constant sizes.
func TestSymbolicSizesSurviveDifferentiation(t *testing.T) {
	for name, symbols := range symbolic {
		t.Run(name, func(t *testing.T) {
			c := golden[name]
			build := func(symbolic bool) *ir.Graph {
				g, err := ir.Build("g", func(b *ir.Builder) {
					var in values
					for i, dims := range c.in {
						shape := ir.Dims(dims...)
						for s, places := range symbols {
							for axis := range shape {
								if symbolic && slices.Contains(places, at{i, axis}) {
									shape[axis] = ir.Sym(s)
								}
							}
						}
						in = append(in, b.Input("x"+strconv.Itoa(i), ir.F64, shape...))
					}
					b.Output("y", c.build(b, in))
				})
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			sizes := map[string]int{}
			for s, places := range symbols {
				sizes[s] = c.in[places[0].operand][places[0].axis]
			}
			constant, free := build(false), build(true)
			j, js := slopesOf(t, constant), slopesOf(t, free)
			bound, err := js.backward(t, free).Bind(sizes)
			if err != nil {
				t.Fatal(err)
			}
			var in []*ir.Array
			for i, dims := range c.in {
				in = append(in, pattern(i+1, dims))
			}
			in = append(in, noises(j.outTypes, 3)...)
			want := run(t, j.backward(t, constant), in)
			for i, got := range run(t, bound, in) {
				compareArrays(t, got, want[i])
			}
		})
	}
}
