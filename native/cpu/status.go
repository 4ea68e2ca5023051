package cpu

import "sync/atomic"

// status is the code of the first check that failed in a run, 0 for none.
type status struct{ code atomic.Uint32 }

func (s *status) failed() bool { return s.code.Load() != 0 }

// fail notes a code, unless there is one.
func (s *status) fail(code uint32) { s.code.CompareAndSwap(0, code) }

// take returns the code and clears it.
func (s *status) take() uint32 { return s.code.Swap(0) }
