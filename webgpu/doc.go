// Package webgpu is the backend "webgpu" of native programs: it runs modules on the
// machine's GPU through Vulkan, Metal or Direct3D 12. Importing the package registers it:
//
//	import _ "github.com/rlx-go/rlx/webgpu"
//
// "webgpu:vulkan", "webgpu:metal", "webgpu:d3d12" and "webgpu:opengl" name the graphics API to use;
// "webgpu" leaves the choice to wgpu. It needs cgo; without, Probe says so. It compiles a module to a plan with WGSL kernels
// and replays it by internal/executor/async, of whose Machine this package is an implementation. Start reading
// at backend.go, then program.go and stage.go.
package webgpu

// Name is the name of the backend.
const Name = "webgpu"

// apis are the graphics APIs that variants of the backend name, sorted.
var apis = []string{"d3d12", "metal", "opengl", "vulkan"}
