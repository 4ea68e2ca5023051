package fusion

import "github.com/rlx-go/rlx/ir"

// lowestDigit is for targets with tensor cores, which the browser lacks.
func (s *nodeSpace) lowestDigit(ir.Value, ir.Index, int) (own, run int) { return 0, 0 }
