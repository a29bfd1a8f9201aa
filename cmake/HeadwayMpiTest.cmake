find_program(HEADWAY_MPIRUN mpirun)
if(HEADWAY_MPIRUN)
  set(HEADWAY_TEST_LAUNCHER ${HEADWAY_MPIRUN} --allow-run-as-root --oversubscribe --bind-to none
    --mca btl self,vader --mca plm isolated --mca rmaps_base_oversubscribe 1 -np)
else()
  message(STATUS "No mpirun: tests of several ranks are started by torchrun")
  set(HEADWAY_TEST_LAUNCHER ${Python_EXECUTABLE} -m torch.distributed.run --no-python --standalone --nproc-per-node)
endif()

add_library(headway_mpi_main STATIC ${PROJECT_SOURCE_DIR}/tests/distributed/support/mpi_main.cpp)
target_link_libraries(headway_mpi_main PUBLIC headway headway_warnings headway_fmt nlohmann_json::nlohmann_json
  GTest::gtest GTest::gmock)
target_include_directories(headway_mpi_main PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)

set(HEADWAY_GPU_RANKS 1 2 4)

function(_headway_add_mpi_test test_name target ranks seconds label backend)
  math(EXPR timeout "${seconds} + 20")  # the test ends itself first
  add_test(NAME ${test_name} COMMAND ${HEADWAY_TEST_LAUNCHER} ${ranks} $<TARGET_FILE:${target}>)
  set_tests_properties(${test_name} PROPERTIES
    LABELS ${label} RUN_SERIAL ON TIMEOUT ${timeout} SKIP_REGULAR_EXPRESSION "skipped: NCCL needs"
    ENVIRONMENT "OMP_NUM_THREADS=1;MKL_NUM_THREADS=1;HEADWAY_TEST_BACKEND=${backend};HEADWAY_TEST_SECONDS=${seconds}")
endfunction()

# headway_mpi_test(name RANKS n... SOURCES file... [LIBRARIES target...] [BACKENDS backend...] [SECONDS limit]
# [LABEL label]): tests that run once for each number of ranks: as name_np<n> with the CPU's default backend, as
# name_<backend>_np<n> for each further backend, and, for 1, 2 and 4 ranks where torch has CUDA, as name_nccl_np<n> with
# the label gpu or multi_gpu. Each run has 120 seconds unless said otherwise. See
# tests/distributed/support/parallel_test.h for what tests may use.
function(headway_mpi_test name)
  cmake_parse_arguments(TEST "" "SECONDS;LABEL" "RANKS;SOURCES;LIBRARIES;BACKENDS" ${ARGN})
  if(NOT TEST_SECONDS)
    set(TEST_SECONDS 120)
  endif()
  if(NOT TEST_LABEL)
    set(TEST_LABEL distributed)
  endif()
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LIBRARIES} headway_mpi_main)
  foreach(ranks IN LISTS TEST_RANKS)
    _headway_add_mpi_test(${name}_np${ranks} ${name} ${ranks} ${TEST_SECONDS} ${TEST_LABEL} auto)
    foreach(backend IN LISTS TEST_BACKENDS)
      _headway_add_mpi_test(${name}_${backend}_np${ranks} ${name} ${ranks} ${TEST_SECONDS} ${TEST_LABEL} ${backend})
    endforeach()
    if(HEADWAY_TORCH_HAS_CUDA AND ranks IN_LIST HEADWAY_GPU_RANKS)
      set(label multi_gpu)
      if(ranks EQUAL 1)
        set(label gpu)
      endif()
      _headway_add_mpi_test(${name}_nccl_np${ranks} ${name} ${ranks} ${TEST_SECONDS} ${label} nccl)
    endif()
  endforeach()
endfunction()
