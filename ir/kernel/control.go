package kernel

import "github.com/rlx-go/rlx/ir"

func (p *Program) loop(g *Group) ([]Item, error) {
	return nil, g.Members[0].Node.Fail(ir.Errorf(ir.ErrUnsupported, "loops"))
}
