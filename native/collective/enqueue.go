package collective

import "time"

// Pending is a collective that a device makes, with arrays in its own memory.
type Pending struct {
	group  *Group
	call   Call
	number int64
	begun  time.Time
	kept   *kept
}

// Enqueue enters a collective that a device makes, in the order of the device, in the record of the
// group. Send and Recv of the call are nil, and Bytes is set. It fails with the error that ended the
// group, as an [*Error] with the collective.
func (g *Group) Enqueue(c *Call) (*Pending, error) {
	if err := g.given(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sequence++
	if err := g.Err(); err != nil {
		return nil, g.wrap(g.sequence, c, err)
	}
	return &Pending{g, *c, g.sequence, time.Now(), g.record.begin(g.sequence, c)}, nil
}

// End records the end of the collective, nil for success.
func (p *Pending) End(err error) { p.kept.end(p.number, err) }

// Started returns when the collective was enqueued.
func (p *Pending) Started() time.Time { return p.begun }

// Fail aborts the group on all ranks because of an error of the collective, a [*Fault] or the
// device's own, and returns it as an [*Error] with the collective.
func (p *Pending) Fail(err error) error {
	err = p.group.failAt(p.number, &p.call, err)
	p.End(err)
	return err
}

// AtClose has [Group.Close] call f before it ends the use of the group.
func (g *Group) AtClose(f func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.atClose = append(g.atClose, f)
}
