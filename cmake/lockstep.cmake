# One static library per folder, its unit tests beside the code in one executable FOLDER_test.

# Flags of our own code only. FP contraction is off so that a result never depends on which
# expressions the compiler chose to fuse; kernels that want FMA ask for it.
add_library(lockstep_flags INTERFACE)
target_compile_options(lockstep_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  # g++ 12 warns falsely inside std::string (GCC bug 105329); clang does not know the option.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  -ffp-contract=off)
target_include_directories(lockstep_flags INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})

# lockstep_library(NAME SOURCES a.cpp... [TESTS a_test.cpp...] [DEPS lib...])
function(lockstep_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS} PRIVATE lockstep_flags)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  if(ARG_TESTS)
    lockstep_test(${name}_test SOURCES ${ARG_TESTS} DEPS ${name})
  endif()
endfunction()

# lockstep_test(NAME SOURCES a_test.cpp... [DEPS lib...] [LABELS slow])
function(lockstep_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} GTest::gtest_main lockstep_flags)
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h>)
  # A test's time goes into compiling it. g++ 12 warns falsely about strings and vectors at -O1.
  target_compile_options(${name} PRIVATE -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds
    -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread>)
  target_compile_definitions(${name} PRIVATE
    LOCKSTEP_SOURCE_DIR="${CMAKE_SOURCE_DIR}" LOCKSTEP_BINARY_DIR="${CMAKE_BINARY_DIR}")
  # One label for ctest to choose by: the executable's name, then those asked for.
  list(JOIN ARG_LABELS " " more_labels)
  string(STRIP "${name} ${more_labels}" label)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT 600 LABELS "${label}")
endfunction()
include(GoogleTest)
