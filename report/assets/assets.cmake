# The page's files become part of the program, each with the hash that its content security policy
# names.
set(LOCKSTEP_HTML_ASSETS "")
foreach(pair
    page_template=report/assets/page.html page_style=report/assets/page.css
    page_script=report/assets/page.js uplot_style=third_party/uplot/uPlot.min.css
    uplot_script=third_party/uplot/uPlot.iife.min.js uplot_licence=third_party/uplot/LICENSE)
  string(REPLACE "=" ";" pair ${pair})
  list(GET pair 0 name)
  list(GET pair 1 path)
  set(path ${CMAKE_SOURCE_DIR}/${path})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  file(SHA256 ${path} hash)
  string(APPEND LOCKSTEP_HTML_ASSETS
    "HtmlAsset ${name}() { return {R\"asset(${text})asset\", \"${hash}\"}; }\n")
endforeach()
configure_file(assets/html_assets.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/html_assets.cpp @ONLY)
