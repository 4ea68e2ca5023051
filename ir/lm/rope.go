package lm

import (
	"encoding/json"
	"math"

	"github.com/rlx-go/rlx/internal/hfconfig"
	"github.com/rlx-go/rlx/ir"
)

// ropeScaling is rope_scaling or rope_parameters of config.json.
type ropeScaling struct {
	Type     string   `json:"rope_type"`
	OldType  string   `json:"type"`
	Theta    *float64 `json:"rope_theta"`
	Partial  *float64 `json:"partial_rotary_factor"`
	Factor   float64  `json:"factor"`
	Original *int     `json:"original_max_position_embeddings"`

	LowFrequency  float64 `json:"low_freq_factor"` // of llama3
	HighFrequency float64 `json:"high_freq_factor"`

	Attention  *float64  `json:"attention_factor"` // of yarn and longrope
	BetaFast   *float64  `json:"beta_fast"`
	BetaSlow   *float64  `json:"beta_slow"`
	Truncate   *bool     `json:"truncate"`
	MScale     float64   `json:"mscale"`
	MScaleAll  float64   `json:"mscale_all_dim"`
	Short      []float64 `json:"short_factor"`
	LongFactor []float64 `json:"long_factor"`
}

// rope sets the rotation of c.
func (h *hfConfig) rope(c *Config) error {
	s, local, err := h.scaling()
	if err != nil {
		return err
	}
	base := 10000.
	if c.Architecture == "gemma3" {
		base = 1e6
		local.Theta = orPointer(local.Theta, given(h.LocalTheta, 10000))
	}
	r := &Rope{Base: given(s.Theta, given(h.Theta, base)), LocalBase: given(local.Theta, 0), Interleaved: families[c.Architecture].neighbours}
	if c.Architecture == "olmo3" {
		r.LocalBase = given(local.Theta, r.Base)
	}
	if c.Rope = r; c.HeadSize < 0 || c.HeadSize > maxFeatures {
		return nil // which Check refuses
	}
	if partial := given(s.Partial, given(h.Partial, 1)); finite(partial) && partial > 0 && partial <= 1 {
		r.Size = int(float64(c.HeadSize) * partial)
	}
	if h.rotated != 0 {
		r.Size = h.rotated
	}
	if err := r.check(c.HeadSize); err != nil {
		return err
	}
	original := given(s.Original, given(h.Original, c.Context))
	return s.apply(r, c.Context, original)
}

func orPointer(p *float64, otherwise float64) *float64 {
	if p == nil {
		return &otherwise
	}
	return p
}

// scaling returns the scaling of layers without a window, and of those with one.
func (h *hfConfig) scaling() (global, local ropeScaling, err error) {
	for _, data := range []json.RawMessage{h.Scaling, h.Parameters} {
		if len(data) == 0 {
			continue
		}
		var byLayer struct {
			Full    *ropeScaling `json:"full_attention"`
			Sliding *ropeScaling `json:"sliding_attention"`
		}
		if err := hfconfig.Parse(data, &byLayer); err != nil {
			return global, local, err
		}
		if byLayer.Full != nil {
			global, local = *byLayer.Full, given(byLayer.Sliding, ropeScaling{})
		} else if err := hfconfig.Parse(data, &global); err != nil {
			return global, local, err
		}
	}
	return global, local, nil
}

// apply sets the divisors and the amplitude of r by the formulas of transformers'
// modeling_rope_utils.py.
func (s *ropeScaling) apply(r *Rope, context, original int) error {
	kind := s.Type
	if kind == "" {
		kind = s.OldType
	}
	switch kind {
	case "", "default":
		return nil
	case "longrope", "su":
		s.longRope(r, context, original)
		return nil
	}
	if !(s.Factor >= 1) || !finite(s.Factor) {
		return badConfig("rope_scaling has factor %v: it must be 1 or more", s.Factor)
	}
	switch kind {
	case "linear":
		r.divide(func(int, float64) float64 { return s.Factor })
	case "llama3":
		return s.llama3(r, float64(original))
	case "yarn":
		s.yarn(r, float64(original))
	default:
		return ir.Errorf(ir.ErrUnsupported, "rope_type is %q: it must be default, linear, llama3, yarn or longrope", kind)
	}
	return nil
}

// divide sets the divisor of each pair i by its angle.
func (r *Rope) divide(by func(i int, angle float64) float64) {
	r.Divisors = make([]float64, r.Size/2)
	for i := range r.Divisors {
		r.Divisors[i] = by(i, angle(r.Base, i, r.Size))
	}
}

// llama3 divides the angles of long waves by the factor, none of short ones, and in between by a mean.
func (s *ropeScaling) llama3(r *Rope, original float64) error {
	if !(s.LowFrequency > 0) || !(s.HighFrequency > s.LowFrequency) || original < 1 {
		return badConfig("rope_scaling has low_freq_factor %v, high_freq_factor %v and original_max_position_embeddings %v: the first must be positive and less than the second, the last 1 or more",
			s.LowFrequency, s.HighFrequency, original)
	}
	r.divide(func(_ int, angle float64) float64 {
		wave := 2 * math.Pi / angle
		smooth := (original/wave - s.LowFrequency) / (s.HighFrequency - s.LowFrequency)
		switch {
		case wave > original/s.LowFrequency:
			return s.Factor
		case wave < original/s.HighFrequency:
			return 1
		}
		return 1 / ((1-smooth)/s.Factor + smooth)
	})
	return nil
}

// yarn divides the angles by a ramp over the pairs (Peng et al., YaRN).
func (s *ropeScaling) yarn(r *Rope, original float64) {
	pair := func(turns float64) float64 {
		return float64(r.Size) * math.Log(original/(turns*2*math.Pi)) / (2 * math.Log(r.Base))
	}
	low, high := pair(given(s.BetaFast, 32)), pair(given(s.BetaSlow, 1))
	if given(s.Truncate, true) {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(r.Size-1))
	if low == high {
		high += 0.001
	}
	r.divide(func(i int, _ float64) float64 {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		return 1 / (ramp/s.Factor + 1 - ramp)
	})
	scale := func(m float64) float64 {
		if s.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(s.Factor) + 1
	}
	r.Amplitude = scale(1)
	if s.MScale != 0 && s.MScaleAll != 0 {
		r.Amplitude = scale(s.MScale) / scale(s.MScaleAll)
	}
	r.Amplitude = given(s.Attention, r.Amplitude)
}

// longRope divides each angle by its own factor, from one of two lists (Ding et al., LongRoPE).
func (s *ropeScaling) longRope(r *Rope, context, original int) {
	r.Divisors, r.LongDivisors, r.Original = s.Short, s.LongFactor, original
	if s.Short == nil {
		r.Divisors = []float64{} // which Check refuses
	}
	r.Amplitude = 1
	if factor := float64(context) / float64(original); factor > 1 && original > 1 {
		r.Amplitude = math.Sqrt(1 + math.Log(factor)/math.Log(float64(original)))
	}
	r.Amplitude = given(s.Attention, r.Amplitude)
}
