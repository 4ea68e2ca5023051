// Package webgpu is the backend "webgpu" of native programs: modules run on the
// GPU of this machine through Vulkan, Metal or Direct3D 12. Importing the
// package registers it:
//
//	import _ "github.com/rlx-go/rlx/webgpu"
//
// It needs cgo; in a program built without, the backend is there and says so.
// Package exec has what is below: devices, plans, submissions.
package webgpu

// Name is the name of the backend.
const Name = "webgpu"
