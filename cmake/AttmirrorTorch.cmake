# attmirror_find_torch(): looks for LibTorch, and leaves its target `torch` and ATTMIRROR_TORCH_VERSION.
#
# LibTorch's own files set many variables, some of them flags for everything that is compiled after; a function keeps
# them to itself. Called from the top folder, so that all folders below see the target.
function(attmirror_find_torch)
  find_package(Torch QUIET)
  set(ATTMIRROR_TORCH_VERSION "${Torch_VERSION}" PARENT_SCOPE)
endfunction()
