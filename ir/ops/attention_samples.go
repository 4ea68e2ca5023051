package ops

import (
	"slices"

	"github.com/rlx-go/rlx/ir"
)

func attentionSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	type shapes = [][]int // of q, k, v and the mask
	sample := func(name string, a AttentionAttrs, of shapes) ir.Sample {
		s := ir.Sample{Name: name, Attrs: &a}
		for i, dims := range of {
			s.In = append(s.In, draw(uint64(40+i), ir.F32, -1, 1, dims...))
		}
		return s
	}
	plain := shapes{{2, 3, 4, 5}, {2, 3, 6, 5}, {2, 3, 6, 7}}
	square := shapes{{2, 5, 4}, {2, 5, 4}, {2, 5, 3}}
	boolean := sample("boolean mask", AttentionAttrs{Scale: 0.5}, square)
	boolean.In = append(boolean.In, ir.Ints(ir.Bool, []int64{
		1, 0, 0, 1, 1,
		0, 0, 0, 0, 0, // a query that sees no key
		1, 1, 1, 1, 1,
		0, 0, 1, 0, 0,
		1, 1, 0, 0, 1,
	}, 5, 5))
	half := ir.Sample{Name: "half", Attrs: &AttentionAttrs{Scale: 0.5}, In: []*ir.Array{drawn(ir.F16, 3, 4), drawn(ir.F16, 5, 4), drawn(ir.F16, 5, 2)}}
	return []ir.Sample{
		sample("plain", AttentionAttrs{Scale: 0.4}, plain),
		sample("no batch", AttentionAttrs{Scale: 1}, shapes{{3, 2}, {4, 2}, {4, 5}}),
		sample("causal", AttentionAttrs{Scale: 0.5, Causal: true}, square),
		sample("causal with a past", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{1, 2, 3}, {1, 5, 3}, {1, 5, 2}}),
		sample("causal with early queries", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{5, 3}, {3, 3}, {3, 2}}),
		sample("softcap", AttentionAttrs{Scale: 1, Softcap: 0.7}, square),
		sample("bias", AttentionAttrs{Scale: 0.5}, append(slices.Clone(plain), []int{3, 1, 6})),
		sample("bias, softcap and causal", AttentionAttrs{Scale: 0.5, Softcap: 2, Causal: true}, append(slices.Clone(square), []int{2, 5, 5})),
		sample("grouped queries", AttentionAttrs{Scale: 0.5, Causal: true}, shapes{{2, 6, 4, 5}, {2, 3, 4, 5}, {2, 3, 4, 2}, {6, 4, 4}}),
		sample("beyond a tile", AttentionAttrs{Scale: 0.2, Causal: true}, shapes{{2, 35, 33}, {2, 67, 33}, {2, 67, 17}}),
		sample("window", AttentionAttrs{Scale: 0.5, Window: 2}, square),
		sample("causal window beyond a tile", AttentionAttrs{Scale: 0.2, Causal: true, Window: 9}, shapes{{2, 35, 33}, {2, 67, 33}, {2, 67, 17}}),
		sample("no queries", AttentionAttrs{Scale: 1}, shapes{{2, 0, 3}, {2, 4, 3}, {2, 4, 5}}),
		sample("no keys", AttentionAttrs{Scale: 1}, shapes{{2, 3, 3}, {2, 0, 3}, {2, 0, 5}}),
		boolean, half,
	}
}

// attentionForwardSamples leave out of gradient checks where a query sees no
// key: its log-sum-exp is -Inf.
func attentionForwardSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	samples := attentionSamples()
	for i, s := range samples {
		switch s.Name {
		case "causal with early queries", "no keys", "boolean mask":
			samples[i].NoGrad = "a result is infinite"
		}
	}
	return samples
}

// attentionBackwardSamples are those of the forward op, with numbers in place
// of what would follow from it: as a function of its operands the op has a
// value everywhere.
func attentionBackwardSamples() []ir.Sample {
	if !withSamples {
		return nil
	}
	samples := attentionSamples()
	for i, s := range samples {
		q, v := s.In[0], s.In[2]
		rows := q.Dims[:len(q.Dims)-1]
		d := sumType(q.DType)
		rest := []*ir.Array{
			draw(50, d, 1, 2, rows...), draw(51, d, -1, 1, rows...),
			draw(52, q.DType, -1, 1, slices.Concat(rows, v.Dims[len(v.Dims)-1:])...),
		}
		samples[i].In = slices.Concat(s.In[:3], rest, s.In[3:])
	}
	return samples
}
