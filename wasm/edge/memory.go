package edge

import (
	"container/list"
	"context"
	"sync"
)

// memory is a store of bounded size, which drops the least recently used value.
type memory struct {
	mu     sync.Mutex
	room   int
	values map[string]*list.Element
	used   *list.List // of value, the most recently used first
}

type value struct {
	key  string
	data []byte
}

func (v *value) size() int { return len(v.key) + len(v.data) }

func newMemory(room int) *memory {
	return &memory{room: room, values: map[string]*list.Element{}, used: list.New()}
}

// Get implements [Store].
func (m *memory) Get(_ context.Context, key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.values[key]
	if !ok {
		return nil, false
	}
	m.used.MoveToFront(e)
	return e.Value.(*value).data, true
}

// Put implements [Store].
func (m *memory) Put(_ context.Context, key string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.values[key]; ok {
		m.remove(e)
	}
	v := &value{key, data}
	m.values[key] = m.used.PushFront(v)
	m.room -= v.size()
	for m.room < 0 {
		m.remove(m.used.Back())
	}
}

func (m *memory) remove(e *list.Element) {
	v := m.used.Remove(e).(*value)
	delete(m.values, v.key)
	m.room += v.size()
}
