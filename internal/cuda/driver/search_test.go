package driver

import (
	"path/filepath"
	"slices"
	"testing"
)

// machine is an environment with given folders and variables.
func machine(variables map[string]string, folders ...string) environment {
	return environment{
		get: func(name string) string { return variables[name] },
		glob: func(pattern string) []string {
			var out []string
			for _, f := range folders {
				if ok, err := filepath.Match(pattern, f); ok && err == nil {
					out = append(out, f)
				}
			}
			return out
		},
		path: func(string) string { return variables["python3"] },
	}
}

func TestLibrarySearchOrderIsDocumented(t *testing.T) {
	wheel := func(root string) string { return root + "/lib/python3.12/site-packages/nvidia/cu13/lib" }
	folders := []string{
		"/root/.local/lib/python3.12/site-packages/nvidia/cu13/lib", "/usr/lib64", "/opt/cuda/lib64", "/usr/local/cuda-13.0/lib64",
		"/usr/local/cuda/lib64", wheel("/opt/torch/.venv"), "/conda/lib", wheel("/conda"), wheel("/venv"),
		"/toolkit/targets/x86_64-linux/lib", "/toolkit/lib64", "/usr/local/lib/python3.12/dist-packages/nvidia/cuda_nvrtc/lib",
	}
	e := machine(map[string]string{
		PathVariable: "/mine:/yours", "CUDA_PATH": "/toolkit", "VIRTUAL_ENV": "/venv", "CONDA_PREFIX": "/conda",
		"HOME": "/root", "python3": "/opt/torch/.venv/bin/python3",
	}, folders...)
	want := []string{
		"/mine", "/yours", "/toolkit/lib64", "/toolkit/targets/x86_64-linux/lib", wheel("/venv"), wheel("/conda"), "/conda/lib",
		wheel("/opt/torch/.venv"), "/usr/local/cuda/lib64", "/usr/local/cuda-13.0/lib64", "/opt/cuda/lib64", "/usr/lib64",
		"/usr/local/lib/python3.12/dist-packages/nvidia/cuda_nvrtc/lib", "/root/.local/lib/python3.12/site-packages/nvidia/cu13/lib", "",
	}
	if got := libraryDirs(e); !slices.Equal(got, want) {
		t.Errorf("folders\n%q\nnot\n%q", got, want)
	}
	if got := libraryDirs(machine(nil)); !slices.Equal(got, []string{""}) {
		t.Errorf("a machine with nothing is searched in %q", got)
	}
}

func TestDriversMajorVersionIsPreferred(t *testing.T) {
	e := machine(map[string]string{PathVariable: "/mine"})
	var got []string
	for _, c := range candidates(e, "nvrtc", 13010) {
		got = append(got, c.path)
	}
	want := []string{"/mine/libnvrtc.so.13", "libnvrtc.so.13", "/mine/libnvrtc.so.12", "libnvrtc.so.12"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
	if got := candidates(e, "nvrtc", 11080); len(got) != 0 {
		t.Errorf("for CUDA 11: %v", got)
	}
	if got := driverPaths(e)[:2]; !slices.Equal(got, []string{"/mine/libcuda.so.1", "libcuda.so.1"}) {
		t.Errorf("the driver is looked for in %v first", got)
	}
}
