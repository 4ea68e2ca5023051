package optim

import "github.com/rlx-go/rlx/ir"

// matches knows no patterns in the browser's module.
func matches(string, string) bool { return false }

// spared stands for what the browser's module leaves out.
type spared struct{}

func (spared) of(*Group) (*Group, error) {
	return nil, ir.Errorf(ir.ErrUnsupported, "weight decay of matrices alone is not in the browser's module")
}
