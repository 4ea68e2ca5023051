package cpu

import "github.com/rlx-go/rlx/internal/codegen/jit"

// combine makes running values those of a, or where merged is set those of a
// merged with those of b.
func (s *segment) combine(c *combining, a, b map[register]jit.Value, merged bool) bool {
	if !merged {
		for _, acc := range c.acc {
			s.values[acc] = a[acc]
		}
		return true
	}
	for i, acc := range c.acc {
		if _, known := s.values[acc]; !known {
			s.values[acc] = a[acc]
		}
		s.values[c.other[i]] = b[acc]
	}
	return s.addAll(c.code)
}

// fold merges the lanes of running values, by halves, and stores them.
func (s *segment) fold(c *combining) bool {
	for by := s.k.Width() / 2; by > 0; by /= 2 {
		for i, acc := range c.acc {
			s.values[c.other[i]] = s.k.Rotate(s.values[acc], by)
		}
		if !s.addAll(c.code) {
			return false
		}
	}
	s.keep(c)
	return true
}

func (s *segment) addAll(code []instr) bool {
	for i := range code {
		if !s.add(&code[i]) && code[i].kind != opSplat {
			return false
		}
	}
	return true
}

// load reads the lanes of running values.
func (s *segment) load(c *combining) map[register]jit.Value {
	out := map[register]jit.Value{}
	for _, acc := range c.acc {
		out[acc] = s.loadSingle(acc)
	}
	return out
}

// loadSingle reads the lanes of a value that one register has.
func (s *segment) loadSingle(r register) jit.Value {
	return s.k.Load(s.array(fusedArray{reg: r, single: true}), wordType(r))
}

// keepSingle writes them.
func (s *segment) keepSingle(r register) {
	s.k.Store(s.array(fusedArray{reg: r, single: true, stores: true}), wordType(r), s.values[r])
}

// keep writes the lanes of running values.
func (s *segment) keep(c *combining) {
	for _, acc := range c.acc {
		s.keepSingle(acc)
	}
}
