# Writes a man page a verb, and mekik(1), from the help that the program prints: cmake -DMEKIK=<program> -DOUT=<folder> -P man.cmake
function(ask out)
  execute_process(COMMAND ${MEKIK} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Text as roff takes it: nothing in it is a command.
function(escape out text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# The part of a help text below "name:", up to the next part or the end.
function(part out help name)
  set(found "")
  if(help MATCHES "(^|\n)${name}:\n(.*)")
    set(found "${CMAKE_MATCH_2}")
    string(REGEX REPLACE "\n\n[a-z][^\n]*:\n.*" "\n" found "${found}")
    string(STRIP "\n${found}" stripped)
    if(NOT stripped STREQUAL "")
      string(REGEX REPLACE "[ \n]+$" "" found "${found}")
    endif()
  endif()
  escape(found "${found}")
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

set(ending ".SH EXIT STATUS
.TP
0
It did what it was asked to. SIGTERM after all answers were finished counts as that.
.TP
1
Something that exists cannot be used, or the run failed.
.TP
2
The command line or the pipeline is wrong, or a path does not exist.
")

function(write_page name version summary synopsis body also)
  string(TOUPPER "${name}" title)
  escape(summary "${summary}")
  escape(synopsis "${synopsis}")
  file(WRITE ${OUT}/${name}.1 ".TH ${title} 1 \"\" \"mekik ${version}\" \"mekik\"
.SH NAME
${name} \\- ${summary}
.SH SYNOPSIS
${synopsis}
${body}${ending}.SH SEE ALSO
${also}
.br
Guides: /usr/share/doc/mekik, or share/doc/mekik below where mekik was installed.
")
endfunction()

ask(help --help)
ask(version_text --version)
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version_text}")
string(REGEX MATCHALL "\n  [a-z]+ " lines "${help}")
set(verbs "")
foreach(line IN LISTS lines)
  string(REGEX MATCH "[a-z]+" verb "${line}")
  list(APPEND verbs ${verb})
endforeach()
set(all ".BR mekik (1)")
foreach(verb IN LISTS verbs)
  string(APPEND all ",\n.BR mekik\\-${verb} (1)")
endforeach()

foreach(verb IN LISTS verbs)
  ask(help_of_verb ${verb} --help)
  string(REGEX MATCH "^usage: ([^\n]*)\n\n([^\n]*)" head "${help_of_verb}")
  set(usage "${CMAKE_MATCH_1}")
  set(summary "${CMAKE_MATCH_2}")
  part(options "${help_of_verb}" options)
  part(example "${help_of_verb}" "examples?")
  set(body "")
  if(NOT options STREQUAL "")
    string(APPEND body ".SH OPTIONS\n.nf\n${options}\n.fi\n")
  endif()
  if(NOT example STREQUAL "")
    string(APPEND body ".SH EXAMPLE\n.nf\n${example}\n.fi\n")
  endif()
  write_page(mekik-${verb} "${version}" "${summary}" "${usage}" "${body}" "${all}")
endforeach()

string(REGEX MATCH "^mekik: ([^\n]*)" first "${help}")
set(summary "${CMAKE_MATCH_1}")
string(REGEX MATCH "\n  [a-z]+ .*" list "${help}")
escape(list "${list}")
write_page(mekik "${version}" "${summary}" "mekik VERB ..." ".SH DESCRIPTION\n.nf${list}\n.fi
.SH ENVIRONMENT
.TP
MEKIK_PLUGIN_PATH
Folders with plugins, absolute, separated by colons; looked in after the install's own and those of the pipeline.
" "${all}")
