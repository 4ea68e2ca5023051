// Package ballast makes the heap of a test larger. A test imports it for that effect:
//
//	import _ "github.com/rlx-go/rlx/internal/ballast"
//
// Graphs, plans and simulations make much garbage while little memory is live. The collector starts
// when the heap has doubled, from 4 MB: thousands of times in a test, which took up to half of its
// processor time. With a large array that is never written, and so takes no memory, the collector
// starts only when the program has allocated as much again as the array's size.
package ballast

const size = 320 << 20

//lint:ignore U1000 it keeps the array alive
var held []byte

func init() { held = make([]byte, size) }
